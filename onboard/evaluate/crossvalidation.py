"""Cross-validation for few rows: every row is predicted by a model that was not trained on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from onboard.evaluate.intervals import Metric
from onboard.evaluate.metrics import FloatArray, IntArray


def merge_folds(n: int, parts: Iterable[tuple[IntArray, FloatArray]]) -> FloatArray:
    """Return out-of-fold predictions of all n rows in order, (n,) or (n, K).

    Args:
        parts: per fold, the indices of its rows and their predictions.

    Raises:
        ValueError: a row is predicted twice or not at all.
    """
    positions, predictions = zip(*parts, strict=True)
    order = np.concatenate(positions)
    if len(order) != n or not np.array_equal(np.sort(order), np.arange(n)):
        raise ValueError(f"the folds must hold each of the {n} rows once")
    in_parts = np.concatenate(predictions)
    merged = np.empty_like(in_parts)
    merged[order] = in_parts
    return merged


def cross_validated(measured: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return metrics of merged out-of-fold predictions, marked as cross-validated."""
    return {name: replace(metric, estimate="cross-validated") for name, metric in measured.items()}
