"""Length-bucketed batches drawn from (seed, step) alone: resumable without any saved state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class LengthBuckets:
    """Token sequences, sorted by length, of which neighbours make a batch (little padding).

    Args:
        sequences: token ids of each text.
        seed: base of every draw.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], seed: int) -> None:
        self._lengths = np.array([len(sequence) for sequence in sequences])
        self._order = np.argsort(self._lengths, kind="stable")
        self._seed = seed

    def draw(self, step: int, size: int) -> np.ndarray:
        """Indices (size,) of one batch: `size` at random out of a random window of twice as many neighbours."""
        rng = np.random.default_rng((self._seed, 0, step))
        window = min(len(self._order), size * 2)
        start = int(rng.integers(0, len(self._order) - window + 1))
        return rng.choice(self._order[start : start + window], size=min(size, window), replace=False)
