"""Detect label errors by confident learning (arXiv 1911.00068); used for checks and trained models.

A row is doubtful if a model that has not seen it is far more certain of another label than of the given one, and at
least as certain of that label as it usually is of rows that have it. A model that is hardly better than the most
frequent label makes no row doubtful.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

# Between the probabilities of the other label and of the given one. With deliberately flipped labels:
# - readouts of mini, 20 draws of 64 rows of tasks new to it, 3 flipped: 13 suspects, all of them flipped;
# at 0.6 there were 29, of which 19 were.
# - bags of words, 400 rows each, every 20th flipped: 88% of the suspects were flipped; at 0.6 it was 72%.
MARGIN: Final = 0.85
LEAST_GAIN: Final = 0.5  # required share of right answers among the errors of the most frequent label
_EQUAL: Final = 1e-9  # smaller differences of probabilities are rounding errors
_FEWEST_OF_LABEL: Final = 2  # a model without a label's only row has never seen the label


@dataclass(frozen=True, slots=True)
class Doubt:
    """A row (index), the label (index) that seems right, and the probabilities of both labels."""

    row: int
    seems: int
    probability: float
    given_probability: float


def doubted_rows(probabilities: np.ndarray, given: np.ndarray) -> list[Doubt]:
    """Return the doubtful rows, clearest first.

    Args:
        probabilities: (n, K) of every row by a model that was trained without it.
        given: (n,) index of each row's label.
    """
    rows, counts = np.arange(len(given)), np.bincount(given, minlength=probabilities.shape[1])
    accuracy, commonest = float((probabilities.argmax(1) == given).mean()), float(counts.max() / len(given))
    if accuracy - commonest < LEAST_GAIN * (1.0 - commonest):
        return []
    of_given = probabilities[rows, given]
    usual = np.bincount(given, of_given, minlength=len(counts)) / np.maximum(counts, 1)  # (K,) usual certainty of each
    likely = np.where((probabilities >= usual - _EQUAL) & (counts > 0), probabilities, 0.0)
    seems = likely.argmax(1)
    apart = np.where(counts[given] < _FEWEST_OF_LABEL, 0.0, likely[rows, seems] - of_given)
    doubted = (
        row for row in np.argsort(-apart, kind="stable").tolist() if apart[row] >= MARGIN and seems[row] != given[row]
    )
    return [Doubt(row, int(seems[row]), float(likely[row, seems[row]]), float(of_given[row])) for row in doubted]
