"""The learning curve with held-out rows: compare embeddings of two halves of the training rows with that of all.

Every held-out row is judged once, by the embedding of one half, so the curve's bootstrap can treat halves like folds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onboard.data.splits import folds
from onboard.domain.dataset import Dataset
from onboard.train.learning_curve import MoreRows, more_rows

SHARE = 0.5


@dataclass(frozen=True)
class Halves:
    """Predictions of held-out rows.

    Args:
        by_half: log-probabilities (m, K) of held-out rows, each by its assigned half; None if there was no time for
            halves.
        by_all: the same by the embedding of all rows.
        rows: number of rows by share, including those that trained the start.
        half: half that each held-out row (m,) is assigned to.
        targets: (m, K), one-hot.
        parts: indices of the training rows of each half.
        of_readout: whether the scores are those of readouts alone.
    """

    by_half: np.ndarray | None
    by_all: np.ndarray
    rows: Mapping[float, float]
    half: np.ndarray
    targets: np.ndarray
    parts: Sequence[np.ndarray]
    of_readout: bool = False

    @classmethod
    def of(
        cls,
        by_half: Sequence[np.ndarray],
        by_all: np.ndarray,
        rows: Mapping[float, float],
        targets: np.ndarray,
        parts: Sequence[np.ndarray],
    ) -> Halves:
        """Assign held-out rows to halves, given each embedding's predictions of all of them, (m, K). `by_half` may be
        empty.
        """
        halves = cls(None, by_all, rows, np.arange(len(by_all)) % len(parts), targets, parts)
        return replace(halves, by_half=halves.in_turn(by_half)) if by_half else halves

    @property
    def scores(self) -> dict[float, np.ndarray]:
        """Return predictions by share of the training rows; empty if there was no time for halves."""
        return {} if self.by_half is None else {SHARE: self.by_half, 1.0: self.by_all}

    def in_turn(self, by_half: Sequence[np.ndarray]) -> np.ndarray:
        """Select, from the predictions of each half (m, K), the rows that are assigned to it (m, K)."""
        turns: np.ndarray = np.stack(by_half)[self.half, np.arange(len(self.half))]
        return turns

    def more_rows(self, there: int) -> MoreRows:
        """Estimate the gain from more labeled rows, in addition to `there` rows."""
        return more_rows(self.scores, self.rows, self.targets, self.half, there, of_readout=self.of_readout)


def two_halves(dataset: Dataset, seed: int) -> list[np.ndarray]:
    """Return indices of the training rows in two stratified halves."""
    return [np.array(half) for half in folds(dataset, 2, seed)]
