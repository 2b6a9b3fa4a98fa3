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
    in_parts = np.concatenate(predictions)
    merged = np.empty_like(in_parts)
    merged[order] = in_parts
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
