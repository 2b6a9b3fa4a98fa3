"""The bytes of features: what the bare encoder says of texts, by a digest of their token ids. No text is in them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from onboard.domain.safetensors_header import with_sorted_header
from onboard.errors import DamagedError, PinMismatchError
from onboard.storage.embedding import read_metadata

FEATURES: Final = "features"  # the kind of the artifact
MOST_TEXTS: Final = 4096  # that are kept of a task
_KEY_BYTES: Final = 16

TokenIds = tuple[int, ...]


def features_key(ids: Sequence[int]) -> bytes:
    """What a text is found by."""
    return hashlib.blake2b(np.array(ids, dtype="<i8").tobytes(), digest_size=_KEY_BYTES).digest()


def pack_features(read: Mapping[TokenIds, np.ndarray], base: str) -> bytes | None:
    """The file of the features (b·h,) of texts by their token ids, pinned to a base by its digest; None without any.

    Columns that are 0 in all rows at the end, the blocks that only pairs have, are left out.
    """
    from safetensors.numpy import save

    if not read:
        return None
    chosen = list(read)[:MOST_TEXTS]
    features = np.stack([read[ids] for ids in chosen]).astype(np.float32, copy=False)
    said = np.flatnonzero(features.any(0))
    width = int(said[-1]) + 1 if len(said) else 1
    keys = np.frombuffer(b"".join(map(features_key, chosen)), dtype=np.uint8).reshape(-1, _KEY_BYTES)
    order = np.lexsort(keys.T[::-1])
    tensors: dict[str, np.ndarray] = {
        "keys": np.ascontiguousarray(keys[order]), "features": np.ascontiguousarray(features[order, :width]),
    }  # fmt: skip
    return with_sorted_header(save(tensors, metadata={"base": base, "width": str(features.shape[1])}))


def unpack_features(content: bytes, base: str) -> dict[bytes, np.ndarray]:
    """Features (b·h,) float32 by `features_key`.

    Raises:
        DamagedError: the bytes hold no features.
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
