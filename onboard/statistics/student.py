"""Student's t intervals of means of few rows."""

from __future__ import annotations

import numpy as np


def half_interval(rows: np.ndarray) -> float:
    """Half the 95% interval of a mean (n,); n ≥ 2."""
    from scipy.special import stdtrit

    half: float = stdtrit(len(rows) - 1, 0.975) * rows.std(ddof=1) / len(rows) ** 0.5
    return float(half)


def student_interval(rows: np.ndarray) -> tuple[float, float]:
    """The ends of the 95% interval of a mean (n,); n ≥ 2."""
    mean, half = float(rows.mean()), half_interval(rows)
    return mean - half, mean + half


def paired(losses: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Mean difference of losses on the rows that both have, and its standard error; infinite below two rows."""
    difference = losses - others
    difference = difference[~np.isnan(difference)]
    if len(difference) < 2:
        return 0.0, float("inf")
    return float(difference.mean()), float(difference.std(ddof=1)) / len(difference) ** 0.5
