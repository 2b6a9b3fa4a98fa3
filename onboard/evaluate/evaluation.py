"""Metrics with intervals from predictions on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from onboard.domain.dataset import Label
from onboard.domain.label_scores import LabelScore
from onboard.domain.report import CALIBRATION_ERROR, METRICS
from onboard.errors import InputError, JobFailedError
from onboard.evaluate import metrics
from onboard.evaluate.intervals import Metric, bootstrap_confusion
from onboard.evaluate.metrics import FloatArray, IntArray, Margins
from onboard.statistics.correlations import pearson_interval, spearman_interval
from onboard.statistics.proportions import wilson
from onboard.statistics.student import mean_interval

ONE_ROW = "a single row has no interval"


def headline_metric(kind: str, metric: str | None = None) -> str:
    """Return the deciding metric for a kind of task: the requested one, else accuracy or spearman.

    Raises:
        InputError: `metric` is not one of this kind's metrics.
    """
    if not metric:
        return METRICS[kind][0]
    if metric not in METRICS[kind]:
        raise InputError("unknown-metric", metric=metric, allowed=list(METRICS[kind]), kind=kind)
    return metric


def evaluate_classification(
    true_index: IntArray, probabilities: FloatArray, metric: str | None = None, labels: Sequence[Label] = ()
) -> dict[str, Metric]:
    """Return accuracy, macro-F1, log-loss and calibration error; MCC for two classes or if `metric` requests it.

    Args:
        true_index: class index per row, (n,), n ≥ 1.
        probabilities: over the K classes, each row sums to one, (n, K). The prediction is the most probable class, the
            lowest index among ties.
        metric: the deciding metric, or None.
        labels: the names of the K classes, to include each of them in macro-F1; may be empty.

    Raises:
        InputError: the metric is unknown.
        JobFailedError: probabilities are not finite (the training diverged).
        ValueError: the arrays do not match.
    """
    deciding = headline_metric("classification", metric)
    probabilities = np.asarray(probabilities, dtype=np.float64)
    _require_finite(probabilities)
    _require_probabilities(true_index, probabilities)
    classes = probabilities.shape[1]
    predicted = probabilities.argmax(axis=1)  # (n,)
    matrix = metrics.confusion(true_index, predicted, classes)  # (K, K)
    macro_f1 = replace(_of_confusion(matrix, "macro_f1"), labels=_by_label(labels, matrix))
    measured = {"accuracy": _accuracy(matrix), "macro_f1": macro_f1}
    if classes == 2 or deciding == "mcc":
        measured["mcc"] = _of_confusion(matrix, "mcc", metrics.why_undefined(true_index, predicted))
    measured["log_loss"] = _mean(metrics.row_log_loss(true_index, probabilities))
    error = metrics.calibration_error(true_index, probabilities)
    measured[CALIBRATION_ERROR] = Metric(error, None, None, len(true_index))
    return measured


def evaluate_regression(true: FloatArray, predicted: FloatArray, metric: str | None = None) -> dict[str, Metric]:
    """Return Spearman, Pearson and mean squared error of predicted numbers, both (n,), n ≥ 1.

    Raises:
        InputError: the metric is unknown.
        JobFailedError: predictions are not finite.
        ValueError: the arrays differ in length or are empty.
    """
    headline_metric("regression", metric)
    true, predicted = np.asarray(true, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if true.shape != predicted.shape or true.ndim != 1 or not len(true):
        raise ValueError(f"true {true.shape} and predicted {predicted.shape} must be two vectors of one length")
    _require_finite(predicted)
    n, note = len(true), metrics.why_undefined(true, predicted)
    r, rho = metrics.pearson(true, predicted), metrics.spearman(true, predicted)
    # an undefined correlation has no interval
    rho_low, rho_high = (None, None) if note else spearman_interval(rho, n)
    r_low, r_high = (None, None) if note else pearson_interval(r, n)
    return {
        "spearman": Metric(rho, rho_low, rho_high, n, note),
        "pearson": Metric(r, r_low, r_high, n, note),
        "mse": _mean(metrics.squared_error(true, predicted)),
    }


def _by_label(labels: Sequence[Label], matrix: IntArray) -> tuple[LabelScore, ...]:
    margins = Margins.of(matrix)
    counts = zip(*(part.tolist() for part in (margins.true, margins.predicted, margins.correct)), strict=True)
    return tuple(LabelScore(label, *of_label) for label, of_label in zip(labels, counts, strict=True)) if labels else ()


def _accuracy(matrix: IntArray) -> Metric:
    right, n = int(np.trace(matrix)), int(matrix.sum())
    return Metric(right / n, *wilson(right, n), n)


def _of_confusion(matrix: IntArray, name: str, note: str = "") -> Metric:
    statistic = {"macro_f1": Margins.macro_f1, "mcc": Margins.mcc}[name]
    value, n = float(statistic(Margins.of(matrix))), int(matrix.sum())
    if note:
        return Metric(value, None, None, n, note)
    return Metric(value, *bootstrap_confusion(matrix, statistic), n)


def _mean(rows: FloatArray) -> Metric:
    interval = mean_interval(rows)
    low, high = interval or (None, None)
    return Metric(float(rows.mean()), low, high, len(rows), "" if interval else ONE_ROW)


def _require_finite(predictions: FloatArray) -> None:
    broken = int((~np.isfinite(predictions)).any(axis=tuple(range(1, predictions.ndim))).sum())
    if broken:
        raise JobFailedError("predictions-not-finite", rows=broken, predictions=len(predictions))


def _require_probabilities(true_index: IntArray, probabilities: FloatArray) -> None:
    if probabilities.ndim != 2 or probabilities.shape[0] != len(true_index) or not len(true_index):
        raise ValueError(f"probabilities {probabilities.shape} must be (n, K) for the {len(true_index)} true classes")
    if true_index.min() < 0 or true_index.max() >= probabilities.shape[1]:
        raise ValueError(f"true classes must lie in 0…{probabilities.shape[1] - 1}")
    if probabilities.min() < -1e-6 or np.abs(probabilities.sum(axis=1) - 1).max() > 1e-3:
        raise ValueError("every row of probabilities must be non-negative and sum to one")
