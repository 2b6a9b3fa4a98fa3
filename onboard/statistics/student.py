"""Student's t intervals of means of few rows."""

from __future__ import annotations

import numpy as np


def half_interval(rows: np.ndarray) -> float:
    """Half the 95% interval of a mean (n,); n ≥ 2."""
    from scipy.special import stdtrit

    found: float = stdtrit(len(rows) - 1, 0.975) * rows.std(ddof=1) / len(rows) ** 0.5
    return float(found)


def student_interval(rows: np.ndarray) -> tuple[float, float]:
    """The ends of the 95% interval of a mean (n,); n ≥ 2."""
    mean, half = float(rows.mean()), half_interval(rows)
    return mean - half, mean + half
