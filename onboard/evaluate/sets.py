"""Metrics with intervals for answers that are sets of labels, and the comparison of two versions.

Symbols: n rows, L labels. Truth is (n, L) of 0 and 1, scores are (n, L), and a label is answered if its score is at
least `ANSWERED_FROM`. Intervals are from a bootstrap over rows, because the labels of one row are dependent; that of
exact match is Wilson's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from onboard.contract.evaluations import PairedComparison
from onboard.domain.dataset import Label
from onboard.domain.label_scores import LabelScore
from onboard.domain.label_set import ANSWERED_FROM, MULTILABEL
from onboard.errors import JobFailedError
from onboard.evaluate.evaluation import headline_metric
from onboard.evaluate.intervals import DRAWS, Metric
from onboard.evaluate.metrics import LOWEST_PROBABILITY, FloatArray
from onboard.evaluate.paired import compare_right
from onboard.statistics.proportions import wilson

_PSEUDO_ROWS: Final = 0.5  # of F1; otherwise a label without observed errors would never vary
_NEVER: Final = "undefined, given as 0: these rows have no label, and none is answered"
_MOST_DRAWN: Final = 20_000_000  # numbers computed at a time in the products of one draw


def answered_sets(scores: FloatArray) -> np.ndarray:
    """Return which labels are answered, (n, L) bool."""
    answered: np.ndarray = scores >= ANSWERED_FROM
    return answered


def evaluate_sets(
    truth: FloatArray, scores: FloatArray, metric: str | None = None, labels: Sequence[Label] = ()
) -> dict[str, Metric]:
    """Return micro- and macro-F1, label ranking average precision, and the share of rows with exactly the right set.

    Args:
        truth: (n, L) of 0 and 1, n ≥ 1.
        scores: (n, L).
        metric: the deciding metric, or None.
        labels: the names of the L labels, to include each of them in macro-F1; may be empty.

    Raises:
        InputError: the metric is unknown.
        JobFailedError: scores are not finite.
        ValueError: the arrays do not match.
    """
    headline_metric(MULTILABEL, metric)
    truth, scores = np.asarray(truth, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if truth.shape != scores.shape or truth.ndim != 2 or not len(truth):
        raise ValueError(f"truth {truth.shape} and scores {scores.shape} must be alike, and hold a row")
    if not np.isfinite(scores).all():
        raise JobFailedError("scores-not-finite")
    answered = answered_sets(scores).astype(np.float64)
    n, right = len(truth), truth * answered
    exact = int((truth == answered).all(1).sum())
    precision = ranking_precision(truth, scores)
    counts = np.stack([right, answered, truth])  # (3, n, L)
    return {
        "micro_f1": _f1(counts, micro=True),
        "macro_f1": _f1(counts, micro=False, labels=_by_label(labels, counts)),
        "lrap": Metric(float(precision.mean()), *_ends(_means(precision), float(precision.mean())), n),
        "exact_match": Metric(exact / n, *wilson(exact, n), n),
    }


def ranking_precision(truth: FloatArray, scores: FloatArray) -> FloatArray:
    """Return the label ranking average precision of each row (n,) (Schapire and Singer 2000).

    It is the mean, over the row's labels, of the share of right labels among all with the same or a higher score. It is
    1 for a row without labels, or with all of them.
    """
    order = np.sort(scores, axis=1)
    above_all = np.stack(
        [scores.shape[1] - np.searchsorted(row, of_row, side="left") for row, of_row in zip(order, scores, strict=True)]
    )  # (n, L), number of labels with the same or a higher score
    scores_of_right = np.where(truth > 0, scores, -np.inf)
    own_sorted = np.sort(scores_of_right, axis=1)
    above_right = np.stack(
        [
            scores.shape[1] - np.searchsorted(row, of_row, side="left")
            for row, of_row in zip(own_sorted, scores, strict=True)
        ]
    )
    shares = np.where(truth > 0, above_right / np.maximum(above_all, 1), 0.0)
    counts = truth.sum(1)
    mean = shares.sum(1) / np.maximum(counts, 1)
    return np.where((counts == 0) | (counts == truth.shape[1]), 1.0, mean)


def row_set_loss(truth: FloatArray, scores: FloatArray) -> FloatArray:
    """Return −ln of the score of the right answer, averaged over the labels of a row, in nats, (n,)."""
    clipped = np.clip(scores, LOWEST_PROBABILITY, 1 - LOWEST_PROBABILITY)
    losses: FloatArray = -(truth * np.log(clipped) + (1 - truth) * np.log(1 - clipped)).mean(1)
    return losses


def compare_sets(truth: FloatArray, earlier: FloatArray, later: FloatArray) -> PairedComparison:
    """Compare scores (n, L) of two versions for the same n rows; n may be 0.

    A row is newly right if the F1 of its set rose, and newly wrong if it fell.

    Raises:
        ValueError: the arrays do not match.
    """
    if not truth.shape == earlier.shape == later.shape:
        raise ValueError(f"scores {earlier.shape} and {later.shape} for truth {truth.shape}")
    before, after = (_row_f1(truth, answered_sets(scores)) for scores in (earlier, later))
    change = row_set_loss(truth, later) - row_set_loss(truth, earlier)
    return compare_right(before > after, after > before, change)


def _row_f1(truth: FloatArray, answered: np.ndarray) -> FloatArray:
    """Return F1 of each row's set (n,); 1 if both the set and the answer are empty."""
    both = truth.sum(1) + answered.sum(1)
    f1: FloatArray = np.where(both > 0, 2 * (truth * answered).sum(1) / np.maximum(both, 1), 1.0)
    return f1


def _by_label(labels: Sequence[Label], counts: np.ndarray) -> tuple[LabelScore, ...]:
    if not labels:
        return ()
    right, answered, true = counts.sum(1).astype(int).tolist()
    return tuple(LabelScore(*of_label) for of_label in zip(labels, true, answered, right, strict=True))


def _f1(counts: np.ndarray, *, micro: bool, labels: tuple[LabelScore, ...] = ()) -> Metric:
    """Return F1 over all decisions, or the mean over occurring labels, of (right, answered, true), each (n, L)."""
    n = counts.shape[1]
    if micro:
        counts = counts.sum(2, keepdims=True)
    occurring = counts[1:].sum((0, 1)) > 0
    if not occurring.any():
        return Metric(0.0, None, None, n, _NEVER, labels=labels)
    counts = counts[:, :, occurring]
    value = float(_mean_f1(counts.sum(1)))
    drawn = _weights(n) @ counts.transpose(1, 0, 2).reshape(n, -1)  # (draws, 3 L)
    values = _mean_f1(drawn.reshape(len(drawn), 3, -1).transpose(1, 0, 2) + _pseudo(counts.sum(1)))
    return Metric(value, *_ends(values, value), n, labels=labels)


def _pseudo(sums: np.ndarray) -> np.ndarray:
    """Return the pseudo-counts for each draw's (right, answered, true), (3, 1, L).

    They are part of a row that is answered like labels on average.
    """
    right, answered, true = sums.sum(1)
    share = (right + 1.0) / (max(answered, true) + 2.0)
    return _PSEUDO_ROWS * np.array([share, 1.0, 1.0])[:, None, None] * np.ones((1, 1, sums.shape[1]))


def _mean_f1(sums: np.ndarray) -> np.ndarray:
    """Return the mean over labels of 2·right / (answered + true), (…), from sums (3, …, L)."""
    right, answered, true = sums
    mean: np.ndarray = (2 * right / np.maximum(answered + true, LOWEST_PROBABILITY)).mean(-1)
    return mean


def _weights(n: int) -> np.ndarray:
    """Return how often each row is drawn, (draws, n); fewer draws for very many rows."""
    draws = int(np.clip(_MOST_DRAWN // n, 100, DRAWS))
    return np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)


def _means(rows: FloatArray) -> np.ndarray:
    means: np.ndarray = _weights(len(rows)) @ rows / len(rows)
    return means


def _ends(values: np.ndarray, value: float) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return min(float(low), value), max(float(high), value)
