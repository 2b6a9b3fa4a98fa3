"""Cross-validated answers of a version to its training rows, packed as text for its row in the registry.

They are few: only datasets of at most 64 rows are cross-validated. Texts are not stored, only their hashes.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

import numpy as np

from onboard.errors import DamagedError

_MOST_BYTES: Final = 1 << 18  # of the packed tensors; a task of very many labels keeps none


def pack_out_of_fold(hashes: Sequence[int], answers: np.ndarray) -> str | None:
    """Base64 of a safetensors file with `hashes` (m,) int64 and `answers` (m, K) float32; None if it gets too large.

    Args:
        hashes: `onboard.data.hashes.row_hashes` of m rows.
        answers: probabilities (m, K) in the order of the version's labels; of a regression the numbers (m, 1).
    """
    from safetensors.numpy import save

    tensors: dict[str, np.ndarray] = {
        "hashes": np.array(hashes, dtype=np.int64),
        "answers": np.ascontiguousarray(answers, dtype=np.float32),
    }
    packed: bytes = save(tensors)
    return base64.b64encode(packed).decode() if len(packed) <= _MOST_BYTES else None


def unpack_out_of_fold(packed: str, width: int) -> dict[int, np.ndarray]:
    """The answers (K,) by the hash of their row.

    Args:
        width: K, the number of labels; 1 of a regression.

    Raises:
        DamagedError: the text does not hold answers of that width.
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
