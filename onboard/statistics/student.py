"""Student's t: intervals of means of few rows, and of paired differences."""

from __future__ import annotations

import math

import numpy as np


def below(bar: float, freedom: float) -> float:
    """Return the probability of less than the bar by Student's t; infinite degrees of freedom are the normal
    distribution.
    """
    from scipy.special import ndtr, stdtr

    return float(ndtr(bar) if math.isinf(freedom) else stdtr(freedom, bar))


def quantile(probability: float, freedom: float) -> float:
    """Return the quantile of the same distribution."""
    from scipy.special import ndtri, stdtrit

    return float(ndtri(probability) if math.isinf(freedom) else stdtrit(freedom, probability))


def half_interval(rows: np.ndarray) -> float:
    """Return half the 95% interval of a mean (n,); n ≥ 2."""
    return float(quantile(0.975, len(rows) - 1) * rows.std(ddof=1) / len(rows) ** 0.5)


def student_interval(rows: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of a mean (n,); n ≥ 2."""
    mean, half = float(rows.mean()), half_interval(rows)
    return mean - half, mean + half


def paired(losses: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Return the mean difference of losses on the same rows, and its standard error; infinite for fewer
    than two rows.
    """
    difference = losses - others
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:
        return 0.0, float("inf")
    return float(difference.mean()), float(difference.std(ddof=1)) / len(difference) ** 0.5


def mean_interval(rows: np.ndarray) -> tuple[float, float] | None:
    """Return Student's t interval of the mean of non-negative losses (n,); None for a single row."""
    if len(rows) < 2:
        return None
    low, high = student_interval(rows)
    return max(0.0, low), high
