"""Cross-validated answers of a version to its training rows, packed as text for the registry.

They are small, because only datasets of at most 64 rows are cross-validated. Only hashes of the texts are stored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

import numpy as np

from onboard.errors import DamagedError

_MOST_BYTES: Final = 1 << 18  # of the packed tensors; tasks with very many labels store none


def pack_out_of_fold(hashes: Sequence[int], answers: np.ndarray) -> str | None:
    """Return Base64 of a safetensors file with `hashes` (m,) int64 and `answers` (m, K) float32; None if it is too
    large.

    Args:
        hashes: `onboard.data.hashes.row_hashes` of m rows.
        answers: probabilities (m, K) in the order of the version's labels; numbers (m, 1) for a regression.
    """
    from safetensors.numpy import save

    tensors: dict[str, np.ndarray] = {
        "hashes": np.array(hashes, dtype=np.int64),
        "answers": np.ascontiguousarray(answers, dtype=np.float32),
    }
    packed: bytes = save(tensors)
    return base64.b64encode(packed).decode() if len(packed) <= _MOST_BYTES else None


def unpack_out_of_fold(packed: str, width: int) -> dict[int, np.ndarray]:
    """Return the answers (K,) by the hash of their row.

    Args:
        width: K, the number of labels; 1 for a regression.

    Raises:
        DamagedError: the text does not contain answers of that width.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(base64.b64decode(packed, validate=True))
        hashes, answers = tensors["hashes"], tensors["answers"].astype(np.float64)
    except (binascii.Error, SafetensorError, KeyError) as error:
        raise _damaged() from error
    if hashes.ndim != 1 or answers.shape != (len(hashes), width) or not np.isfinite(answers).all():
        raise _damaged()
    return dict(zip(hashes.tolist(), answers, strict=True))


def _damaged() -> DamagedError:
    return DamagedError("stored-answers-damaged")
