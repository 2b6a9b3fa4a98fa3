"""Cross-validation where too few rows exist to hold some out: every row is predicted by a model that never saw it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np

from onboard.domain.report import Estimate
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression
from onboard.evaluate.intervals import Metric
from onboard.evaluate.metrics import FloatArray, IntArray

CROSS_VALIDATED: Final[Estimate] = "cross-validated"


def stratified_folds(true_index: IntArray, folds: int, *, seed: int = 0) -> IntArray:
    """A fold 0…folds−1 for every row, (n,): each class is dealt out evenly, and so are the rows as a whole.

    Raises:
        ValueError: fewer than two folds, or more folds than rows.
    """
    if not 2 <= folds <= len(true_index):
        raise ValueError(f"{folds} folds of {len(true_index)} rows")
    shuffled = np.random.default_rng(seed).permutation(len(true_index))
    by_class = shuffled[np.argsort(true_index[shuffled], kind="stable")]  # one class after the other
    dealt = np.empty(len(true_index), dtype=np.int64)
    dealt[by_class] = np.arange(len(true_index)) % folds  # dealing goes on where the last class stopped
    return dealt


def merge_folds(n: int, parts: Iterable[tuple[IntArray, FloatArray]]) -> FloatArray:
    """Out-of-fold predictions of all n rows in their order, (n,) or (n, K).

    Args:
        parts: per fold the positions of its rows and their predictions.

    Raises:
        ValueError: a row that is predicted twice or not at all.
    """
    positions, predictions = zip(*parts, strict=True)
    order = np.concatenate(positions)
    if len(order) != n or not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError(f"the folds must hold each of the {n} rows once")
    found = np.concatenate(predictions)
    merged = np.empty_like(found)
    merged[order] = found
    return merged


def cross_validated_classification(
    true_index: IntArray, out_of_fold: FloatArray, metric: str | None = None
) -> dict[str, Metric]:
    """`evaluate_classification` of merged out-of-fold probabilities (n, K), marked as cross-validated."""
    return _marked(evaluate_classification(true_index, out_of_fold, metric))


def cross_validated_regression(
    true: FloatArray, out_of_fold: FloatArray, metric: str | None = None
) -> dict[str, Metric]:
    """`evaluate_regression` of merged out-of-fold predictions (n,), marked as cross-validated."""
    return _marked(evaluate_regression(true, out_of_fold, metric))


def _marked(found: dict[str, Metric]) -> dict[str, Metric]:
    return {name: replace(metric, estimate=CROSS_VALIDATED) for name, metric in found.items()}
