"""95% intervals of metrics.

- accuracy: Wilson's score interval;
- macro-F1, MCC: bootstrap stratified by true class. The resampled rows of one class are a multinomial draw from its row
  of the confusion matrix, so a draw takes K numbers rather than n, or as many as the class has rows if these are fewer.
  The plain bootstrap ignores errors that did not occur: with 30 rows at 97% accuracy it covered the truth in 6 of 10
  simulations, and a class with a single row never varies. Each class's row is therefore mixed with two pseudo-rows with
  the overall error rate of the model (coverage then 0.87 to 0.99 over the same simulations, 2 to 20 classes, 12 to 200
  rows);
- Pearson, Spearman: Fisher's z; for Spearman with the standard error of Bonett & Wright (2000);
- log-loss, squared error: Student's t around the mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onboard.contract.measured import Estimate, LabelScoreDocument, MetricDocument
from onboard.domain.counting import significant
from onboard.domain.label_scores import LabelScore
from onboard.evaluate.metrics import FloatArray, IntArray, Margins
from onboard.statistics.proportions import Z_95

DRAWS = 1000
PSEUDO_ROWS = 2.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A value with its 95% interval.

    Args:
        value: the point estimate.
        low, high: the interval's ends; None if there are too few rows.
        n: number of rows it was measured on.
        note: why the value or interval is unusual, in plain words.
        estimate: how the predictions were made; None means rows that were not used in training at all.
        labels: with macro-F1, the scores of the labels; empty if they were not requested.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    note: str = ""
    estimate: Estimate | None = None
    labels: tuple[LabelScore, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return value, low, high and n; note, estimate and labels only if set."""
        labels = tuple(map(LabelScoreDocument.of_score, self.labels))
        optional = {"note": self.note, "estimate": self.estimate, "labels": labels}
        return MetricDocument(
            value=significant(self.value), low=significant(self.low), high=significant(self.high), n=self.n,
            **{name: value for name, value in optional.items() if value},
        ).to_json()  # fmt: skip


def bootstrap_confusion(
    matrix: IntArray, statistic: Callable[[Margins], FloatArray], *, seed: int = 0, draws: int = DRAWS
) -> tuple[float, float]:
    """Return the stratified bootstrap interval of a statistic of a confusion matrix (K, K), which includes the value.

    Classes that are neither true nor predicted anywhere are ignored, as in the value.
    """
    occurring = matrix.sum(axis=0) + matrix.sum(axis=1) > 0
    matrix = matrix[np.ix_(occurring, occurring)]
    random = np.random.default_rng(seed)
    true = matrix.sum(axis=1)  # (K,)
    correct = np.zeros((draws, len(true)), dtype=np.int64)
    predicted = np.zeros_like(correct)
    for k, chances in enumerate(_shrunk_rows(matrix)):
        if true[k] < len(true):  # fewer rows than classes: row by row
            picked = np.searchsorted(np.cumsum(chances)[:-1], random.random((draws, true[k])), side="right")
            correct[:, k] = (picked == k).sum(axis=1)
            np.add.at(predicted, (np.arange(draws)[:, None], picked), 1)
        else:
            drawn = random.multinomial(true[k], chances, size=draws)  # (draws, K)
            correct[:, k] = drawn[:, k]
            predicted += drawn
    margins = Margins(correct=correct, predicted=predicted, true=np.broadcast_to(true, correct.shape))
    low, high = np.quantile(statistic(margins), (0.025, 0.975))
    value = float(statistic(Margins.of(matrix)))
    return min(float(low), value), max(float(high), value)


def _shrunk_rows(matrix: IntArray) -> FloatArray:
    """Return P(predicted | true), each row mixed with `PSEUDO_ROWS` rows of the model's overall behavior, (K, K)."""
    classes, n = len(matrix), int(matrix.sum())
    share_right = (np.trace(matrix) + Z_95**2 / 2) / (n + Z_95**2)  # Wilson's center: never 0 or 1
    errors = np.tile((matrix.sum(axis=0) + 1.0) / (n + classes), (classes, 1))  # overall distribution of predictions
    np.fill_diagonal(errors, 0.0)
    if classes > 1:
        errors *= (1 - share_right) / errors.sum(axis=1, keepdims=True)
    overall = errors + np.eye(classes) * (share_right if classes > 1 else 1.0)
    mixed = (matrix + PSEUDO_ROWS * overall) / (matrix.sum(axis=1, keepdims=True) + PSEUDO_ROWS)
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True), dtype=np.float64)
