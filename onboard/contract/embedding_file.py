"""Reading `embedding.safetensors`: the tensor `z`, with metadata as strings.

numpy is imported on the first read, because many clients never read an embedding.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any

from onboard.domain.untrusted_json import parse_json
from onboard.errors import DamagedError

if TYPE_CHECKING:
    import numpy as np

_STRINGS = {
    "task", "kind", "backbone", "base", "hypernetwork", "embedding", "readout", "dataset", "init", "onboard", "format",
    "method", "prior",
}  # fmt: skip


def embedding_digest(z: np.ndarray) -> str:
    """Return `sha256:…` of the float32 numbers alone: equal numbers have the same digest."""
    import numpy as np

    return "sha256:" + hashlib.sha256(np.ascontiguousarray(z, dtype="<f4").tobytes()).hexdigest()


def unpack_embedding(content: bytes) -> np.ndarray:
    """Return z (t,) float32. Does not need the safetensors library, so that clients do not have to install it.

    Raises:
        DamagedError: the bytes have no embedding, or it is not finite.
    """
    import numpy as np

    try:
        (length,) = struct.unpack("<Q", content[:8])
        entry = parse_json(content[8 : 8 + length])["z"]
        start, end = entry["data_offsets"]
        if entry["dtype"] != "F32" or entry["shape"] != [(end - start) // 4] or start < 0 or start % 4:
            raise ValueError("it is not a vector of float32")
        z = np.frombuffer(content[8 + length :], dtype="<f4")[start // 4 : end // 4].astype(np.float32)
        if len(z) != (end - start) // 4:
            raise ValueError("it ends before its last number")
    except (struct.error, KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise DamagedError("embedding-unreadable") from error
    if not np.isfinite(z).all():
        raise DamagedError("embedding-not-finite")
    return z


def read_facts(content: bytes) -> dict[str, Any]:
    """Return the metadata of `embedding.safetensors`: strings unchanged, other values parsed from JSON.

    Raises:
        DamagedError: the bytes are not a safetensors file.
    """
    return {key: _fact(key, value) for key, value in read_metadata(content).items()}


def read_metadata(content: bytes) -> dict[str, str]:
    """Return the metadata with all values as strings. Raises as `read_facts`."""
    try:
        (length,) = struct.unpack("<Q", content[:8])
        metadata = dict(parse_json(content[8 : 8 + length]).get("__metadata__", {}))
        if not all(isinstance(value, str) for value in metadata.values()):
            raise TypeError("metadata are strings")
        return metadata
    except (struct.error, ValueError, AttributeError, TypeError, OverflowError) as error:
        raise DamagedError("embedding-unreadable") from error


def _fact(key: str, value: str) -> Any:
    if key in _STRINGS:
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value
