"""Whether a text is unlike the data of a task: how far what the frozen encoder says of it lies from every label's mean.

The limit is such that of texts like the training rows a known share lies beyond it, which is measured on rows that are
left out of the means (split conformal: the ⌈(1 − a)(n + 1)⌉-th of n distances). What lies within may still be unlike.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np

FALSE_ALARMS: Final = 0.05  # share of rows like the training's that may be taken for unknown
FEWEST_ROWS: Final = 8  # that set a limit


@dataclass(frozen=True)
class Novelty:
    """What a task's texts look like, and beyond which distance a text is unknown.

    Args:
        means: (C, h) float16 of the features of each label's rows; of a regression of all rows.
        limit: squared distance to the nearest of them.
        false_alarms: share of `rows` rows of the task, left out of the means, that are beyond it.
        misses: share of `texts` texts of other kinds that are within it.
    """

    means: np.ndarray
    limit: float
    false_alarms: float
    rows: int
    misses: float
    texts: int

    def unknown(self, features: np.ndarray) -> np.ndarray:
        """Whether texts with these features (n, h or more) are unlike the task's, (n,)."""
        beyond: np.ndarray = nearest(features[:, : self.means.shape[1]], self.means) > self.limit
        return beyond


def find_novelty(features: np.ndarray, groups: np.ndarray, held: np.ndarray, others: np.ndarray) -> Novelty | None:
    """What training rows say is known; None where they are too few, or a mean is no number that float16 holds.

    Args:
        features: (n, h) of training rows.
        groups: label of each (n,), by its number.
        held: features (m, h) of held-out rows, which measure the false alarms where they are enough; else the training
            rows do, each left out of its mean.
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
    place = min(len(distances), ceil((1 - FALSE_ALARMS) * (len(distances) + 1))) - 1
    limit = float(np.sort(distances)[place])
    judged = nearest(held, means) if len(held) >= FEWEST_ROWS else distances
    missed = nearest(others, means) <= limit
    return Novelty(means, limit, float((judged > limit).mean()), len(judged), float(missed.mean()), len(missed))


def nearest(features: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Squared distance of features (n, h) to the nearest of the means (C, h), (n,)."""
    least: np.ndarray = _squared(features.astype(np.float64), means.astype(np.float64)).min(1)
    return least


def _left_out(features: np.ndarray, group: np.ndarray, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The same for the rows of the means, each without itself; a row alone in its group has the other groups only."""
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
