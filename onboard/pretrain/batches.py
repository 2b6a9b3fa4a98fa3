"""Length-bucketed batches drawn from (seed, step) alone: resumable without any saved state."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


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

    def draw(self, step: int, size: int, stream: int = 0) -> np.ndarray:
        """Indices (size,) of one batch: a random window of eight batches, then `size` of it at random."""
        rng = np.random.default_rng((self._seed, stream, step))
        window = min(len(self._order), size * 2)
        start = int(rng.integers(0, len(self._order) - window + 1))
        return rng.choice(self._order[start : start + window], size=min(size, window), replace=False)


def pad(sequences: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-pad with 0: input ids (B, S) and attention mask (B, S)."""
    width = max(len(sequence) for sequence in sequences)
    ids = torch.zeros(len(sequences), width, dtype=torch.long)
    mask = torch.zeros(len(sequences), width, dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence)
        mask[row, : len(sequence)] = 1
    return ids, mask
