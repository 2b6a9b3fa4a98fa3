"""Metrics as plain numbers: always finite, 0.0 if a metric is undefined (`why_undefined` gives the reason).

Symbols: n rows, K classes. Classes are indices 0…K−1; a confusion matrix has true classes in rows and predicted ones in
columns. Accuracy, macro-F1 and MCC only need three vectors of it, the `Margins`, and accept any leading axes, so that a
thousand bootstrap draws are one call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# A probability of zero would make the loss infinite. float32 log-probabilities are not distinguishable below this
# value.
LOWEST_PROBABILITY = 1e-12
CALIBRATION_BINS: Final = 15

# Reasons for an undefined correlation. Rows with the same label cannot show whether a model is good; identical answers
# to rows with different labels show that it is not.
CONSTANT_TRUTH: Final = "undefined, given as 0: all these rows have the same true label"
CONSTANT_PREDICTIONS: Final = "undefined, given as 0: all predictions are the same"


@dataclass(frozen=True, slots=True)
class Margins:
    """Correct, predicted and true rows per class, each (…, K)."""

    correct: IntArray
    predicted: IntArray
    true: IntArray

    @classmethod
    def of(cls, matrix: IntArray) -> Margins:
        """Return the margins of a confusion matrix (K, K)."""
        return cls(correct=np.diagonal(matrix).copy(), predicted=matrix.sum(axis=0), true=matrix.sum(axis=1))

    def accuracy(self) -> FloatArray:
        """Return the share of rows predicted correctly, (…)."""
        return np.asarray(self.correct.sum(axis=-1) / np.maximum(self.true.sum(axis=-1), 1), dtype=np.float64)

    def macro_f1(self) -> FloatArray:
        """Return the mean of F1 = 2·correct / (predicted + true) over the classes that occur in either, (…)."""
        rows = self.predicted + self.true  # (…, K)
        f1 = 2 * self.correct / np.maximum(rows, 1)  # (…, K)
        return np.asarray(f1.sum(axis=-1) / np.maximum((rows > 0).sum(axis=-1), 1), dtype=np.float64)

    def mcc(self) -> FloatArray:
        """Return Matthews' correlation for K classes (Gorodkin 2004, R_K), (…); 0 if either side is constant."""
        true, predicted = self.true.astype(np.float64), self.predicted.astype(np.float64)
        rows = true.sum(axis=-1)  # (…)
        covariance = self.correct.sum(axis=-1) * rows - (predicted * true).sum(axis=-1)
        spread = np.sqrt((rows**2 - (predicted**2).sum(axis=-1)) * (rows**2 - (true**2).sum(axis=-1)))
        return np.where(spread > 0, covariance / np.where(spread > 0, spread, 1.0), 0.0)


def confusion(true: IntArray, predicted: IntArray, classes: int) -> IntArray:
    """Return the count of every pair of true and predicted class, (K, K)."""
    flat = np.bincount(true * classes + predicted, minlength=classes * classes)
    return flat.reshape(classes, classes).astype(np.int64)


def row_log_loss(true: IntArray, probabilities: FloatArray) -> FloatArray:
    """Return −ln of the probability of each row's true class, in nats; probabilities (n, K) → (n,)."""
    of_true_class = probabilities[np.arange(len(true)), true]  # (n,)
    return -np.log(np.clip(of_true_class, LOWEST_PROBABILITY, 1.0))


def calibration_error(true: IntArray, probabilities: FloatArray, bins: int = CALIBRATION_BINS) -> float:
    """Return the expected calibration error, 0…1: the difference between the probability of answers and their accuracy.

    It is the mean of |confidence − accuracy| over bins of equal width of the confidence, weighted by rows (Guo et al.
    2017, arXiv 1706.04599, Eq. 3); the first bin includes 0.

    Args:
        true: class index per row (n,), n ≥ 1; below 0 if no class is right.
        probabilities: (n, K).
    """
    confidence, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == true
    bin_of = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)  # (n,)
    gaps = np.bincount(bin_of, weights=confidence - right, minlength=bins)
    return float(np.abs(gaps).sum() / len(true))


def pearson(true: FloatArray, predicted: FloatArray) -> float:
    """Return Pearson's correlation, −1…1; 0.0 if either side is constant."""
    if is_constant(true) or is_constant(predicted):
        return 0.0
    a, b = true - true.mean(), predicted - predicted.mean()
    a, b = (
        a / np.abs(a).max(),
        b / np.abs(b).max(),
    )  # keeps very small or large scores within float range when squared
    return float(np.clip((a @ b) / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def spearman(true: FloatArray, predicted: FloatArray) -> float:
    """Return Pearson's correlation of the ranks (ties share their mean rank); 0.0 if either side is constant."""
    from scipy.stats import rankdata

    return pearson(rankdata(true), rankdata(predicted))


def squared_error(true: FloatArray, predicted: FloatArray) -> FloatArray:
    """Return the squared error per row, in squared units of the label, (n,)."""
    return np.square(true - predicted)


def is_constant(values: IntArray | FloatArray) -> bool:
    """Return whether all values are equal up to rounding, so that correlations are undefined."""
    return bool(np.ptp(values) <= 1e-12 * np.abs(values).max(initial=0.0))


def why_undefined(true: IntArray | FloatArray, predicted: IntArray | FloatArray) -> str:
    """Return why a correlation (MCC, Pearson, Spearman) is undefined and given as 0; "" if it is defined."""
    if is_constant(true):
        return CONSTANT_TRUTH
    if is_constant(predicted):
        return CONSTANT_PREDICTIONS
    return ""
