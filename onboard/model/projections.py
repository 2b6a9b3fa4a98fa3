"""The random directions of fingerprints. Uses numpy only, so that bases are found without importing torch."""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

import numpy as np

_FIXED_SIZE: Final = 64  # size of a fingerprint on a base without stored projections


class Projections(NamedTuple):
    """Random directions of fingerprints, which never change: stored with the base, or `fixed`.

    Args:
        left, right: (t // 2, h) each, for the features of texts and of labels.
        both: (t - t // 2, 2h), for the means of the two.
    """

    left: np.ndarray
    right: np.ndarray
    both: np.ndarray

    @classmethod
    def drawn(cls, features: int, size: int, seed: int) -> Projections:
        """Draw projections for h features and fingerprints of t numbers."""
        rng, half = np.random.default_rng((seed, 64)), size // 2
        shapes = ((half, features), (half, features), (size - half, 2 * features))
        return cls(*(rng.standard_normal(shape).astype(np.float32) for shape in shapes))

    @classmethod
    def fixed(cls, features: int) -> Projections:
        """Return projections for h features on a base without stored ones: signs from a hash."""
        half = _FIXED_SIZE // 2
        shapes = ((half, features), (half, features), (half, 2 * features))
        counts = [rows * columns for rows, columns in shapes]
        stream = hashlib.shake_256(b"fingerprint").digest(sum(counts) // 8)  # half is a multiple of 8
        signs = np.unpackbits(np.frombuffer(stream, dtype=np.uint8)).astype(np.float32) * 2 - 1
        parts = np.split(signs, np.cumsum(counts)[:-1])
        return cls(*(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)))
