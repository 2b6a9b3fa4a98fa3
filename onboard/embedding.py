"""The bytes of an embedding version: `embedding.safetensors`, the tensor `z` with its facts as string metadata."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from onboard.errors import DamagedError
from onboard.sorted_header import with_sorted_header


def embedding_digest(z: np.ndarray) -> str:
    """`sha256:…` over the float32 numbers alone: equal numbers, equal digest."""
    return "sha256:" + hashlib.sha256(np.ascontiguousarray(z, dtype="<f4").tobytes()).hexdigest()


def pack_embedding(z: np.ndarray, facts: Mapping[str, Any]) -> bytes:
    """`embedding.safetensors` of z (t,), with each fact as a string (JSON where it is none)."""
    from safetensors.numpy import save

    metadata = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for key, value in facts.items()
    }
    return with_sorted_header(save({"z": np.ascontiguousarray(z, dtype=np.float32)}, metadata=metadata))


def unpack_embedding(content: bytes) -> np.ndarray:
    """z (t,) float32.

    Raises:
        DamagedError: the bytes hold no embedding.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        z: np.ndarray = load(content)["z"]
    except (SafetensorError, KeyError) as error:
        raise DamagedError("The bytes hold no task embedding.", "onboard doctor") from error
    return z
