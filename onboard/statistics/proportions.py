"""Proportions: intervals, and tests for differences on the same rows."""

from __future__ import annotations

import math
from typing import Final

Z_95: Final = 1.959963984540054  # standard normal quantile at 97.5%


def wilson(right: int, n: int) -> tuple[float, float]:
    """Return Wilson's interval of a proportion, `right` of `n` rows. n must be positive."""
    share, z2 = right / n, Z_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z_95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    # at the ends the formula has rounding errors, and an interval must contain its value
    return (0.0 if right == 0 else centre - half), (1.0 if right == n else centre + half)


def mcnemar(fewer: int, more: int) -> float:
    """P(at least `more` of the changed answers go one way by chance), one-sided and exact; 1.0 if none changed."""
    from scipy.special import bdtr

    changed = fewer + more
    return float(bdtr(float(changed - more), changed, 0.5)) if changed else 1.0
