"""Read and write the features of texts from the frozen encoder, keyed by a digest of their token ids. No text is
stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from onboard.domain.safetensors_header import with_sorted_header
from onboard.errors import DamagedError, PinMismatchError
from onboard.storage.embedding import read_metadata

FEATURES: Final = "features"  # kind of the artifact
MOST_TEXTS: Final = 4096  # per task
_KEY_BYTES: Final = 16

TokenIds = tuple[int, ...]


def features_key(ids: Sequence[int]) -> bytes:
    """Return the key of a text: a digest of its token ids."""
    return hashlib.blake2b(np.array(ids, dtype="<i8").tobytes(), digest_size=_KEY_BYTES).digest()


def pack_features(read: Mapping[TokenIds, np.ndarray], base: str) -> bytes | None:
    """Return a file of features, pinned to a base; None if there are none.

    Trailing columns that are 0 in all rows (the blocks that only pairs use) are left out.

    Args:
        read: features (b·h,) by token ids. The first 4,096 texts are stored.
    """
    from safetensors.numpy import save

    if not read:
        return None
    texts = list(read)[:MOST_TEXTS]
    features = np.stack([read[ids] for ids in texts]).astype(np.float32, copy=False)
    used_columns = np.flatnonzero(features.any(0))
    width = int(used_columns[-1]) + 1 if len(used_columns) else 1
    keys = np.frombuffer(b"".join(map(features_key, texts)), dtype=np.uint8).reshape(-1, _KEY_BYTES)
    order = np.lexsort(keys.T[::-1])
    tensors: dict[str, np.ndarray] = {
        "keys": np.ascontiguousarray(keys[order]), "features": np.ascontiguousarray(features[order, :width]),
    }  # fmt: skip
    return with_sorted_header(save(tensors, metadata={"base": base, "width": str(features.shape[1])}))


def unpack_features(content: bytes, base: str) -> dict[bytes, np.ndarray]:
    """Return features (b·h,) float32 by `features_key`.

    Raises:
        DamagedError: the bytes contain no features.
        PinMismatchError: they belong to another base.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors, facts = load(content), read_metadata(content)
        keys, features, width = tensors["keys"], tensors["features"], int(facts["width"])
        if keys.shape != (len(features), _KEY_BYTES) or keys.dtype != np.uint8 or features.shape[1] > width:
            raise ValueError("shapes do not fit")
        padded = np.zeros((len(features), width), dtype=np.float32)
        padded[:, : features.shape[1]] = features
    except (SafetensorError, KeyError, ValueError, IndexError) as error:
        raise DamagedError("features-unreadable") from error
    if facts["base"] != base or not np.isfinite(padded).all():
        raise PinMismatchError("features-of-other-base")
    return {key.tobytes(): row for key, row in zip(keys, padded, strict=True)}
