"""Detect texts that are unlike a task's data, by the distance of encoder features to the nearest label mean.

The limit is set so that a known share of texts like the training rows exceeds it, measured on rows outside the means
(split conformal: the ⌈(1 − a)(n + 1)⌉-th of n distances). Texts within the limit may still be unlike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

FALSE_ALARMS: Final = 0.05  # accepted share of rows like the training's that are flagged
FEWEST_ROWS: Final = 8  # minimum to set a limit


@dataclass(frozen=True)
class Novelty:
    """A novelty detector.

    Args:
        means: (C, h) float16 mean features of each label's rows; for a regression of all rows.
        limit: squared distance to the nearest mean beyond which a text is unknown.
        false_alarms: share of `rows` rows of the task, outside the means, that exceed it.
        misses: share of `texts` texts of other kinds within it.
    """

    means: np.ndarray
    limit: float
    false_alarms: float
    rows: int
    misses: float
    texts: int

    def unknown(self, features: np.ndarray) -> np.ndarray:
        """Return whether texts with these features (n, h or more) are unlike the task's, (n,)."""
        beyond: np.ndarray = nearest(features[:, : self.means.shape[1]], self.means) > self.limit
        return beyond

    def left_out(self, trained: int, held: int) -> tuple[int, int]:
        """Return how many of the task's rows were compared without being in the means, and how many are unknown.

        Training rows are among them, each left out of its own mean. Their number beyond the limit follows from the
        rank at which the limit was set, and Fisher's exact test against texts takes this into account: both count how
        many texts precede a fixed rank of the rows.

        Args:
            trained: number of training rows.
            held: number of held-out rows.
        """
        beyond = round(self.false_alarms * self.rows)
        if held < FEWEST_ROWS:  # `rows` are the training rows
            return self.rows, beyond
        return self.rows + trained, beyond + trained - _rank(trained)


def find_novelty(features: np.ndarray, groups: np.ndarray, held: np.ndarray, others: np.ndarray) -> Novelty | None:
    """Fit a novelty detector; None if there are too few rows, or a mean does not fit float16.

    Args:
        features: (n, h) of training rows.
        groups: label index of each (n,).
        held: features (m, h) of held-out rows, which measure the false alarms if there are enough; otherwise the
            training rows do, each without itself in the mean.
        others: features (o, h) of texts of other kinds, o ≥ 1.
    """
    if len(features) < FEWEST_ROWS:
        return None
    kinds, group = np.unique(groups, return_inverse=True)
    counts = np.bincount(group)
    sums = np.zeros((len(kinds), features.shape[1]))
    np.add.at(sums, group, features.astype(np.float64))
    with np.errstate(over="ignore"):
        means = (sums / counts[:, None]).astype(np.float16)
    if not np.isfinite(means).all():
        return None
    distances = _left_out(features.astype(np.float64), group, sums, counts)
    limit = float(np.sort(distances)[_rank(len(distances)) - 1])
    judged = nearest(held, means) if len(held) >= FEWEST_ROWS else distances
    missed = nearest(others, means) <= limit
    return Novelty(means, limit, float((judged > limit).mean()), len(judged), float(missed.mean()), len(missed))


def _rank(rows: int) -> int:
    """Return the rank, from 1, of the limit among the distances of so many rows."""
    return min(rows, ceil((1 - FALSE_ALARMS) * (rows + 1)))


def nearest(features: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the squared distance of features (n, h) to the nearest of the means (C, h), (n,)."""
    least: np.ndarray = _squared(features.astype(np.float64), means.astype(np.float64)).min(1)
    return least


def _left_out(features: np.ndarray, group: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the distances of training rows, each without itself in its mean; single rows use only other groups."""
    rows = np.arange(len(features))
    distances = _squared(features, sums / counts[:, None])
    rest = counts[group] - 1
    own = (sums[group] - features) / np.maximum(rest, 1)[:, None]
    alone = np.inf if len(counts) > 1 else 0.0
    distances[rows, group] = np.where(rest > 0, ((features - own) ** 2).sum(1), alone)
    least: np.ndarray = distances.min(1)
    return least


def _squared(features: np.ndarray, means: np.ndarray) -> np.ndarray:
    squared = (features**2).sum(1)[:, None] + (means**2).sum(1) - 2 * features @ means.T
    positive: np.ndarray = np.maximum(squared, 0.0)
    return positive
