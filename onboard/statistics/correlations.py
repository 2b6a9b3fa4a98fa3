"""Intervals of correlations."""

from __future__ import annotations

import math

from onboard.statistics.proportions import Z_95


def pearson_interval(r: float, n: int) -> tuple[float, float]:
    """Return Fisher's z interval of Pearson's r; the whole range for fewer than four rows."""
    return _fisher(r, standard_error=1 / math.sqrt(n - 3)) if n > 3 else (-1.0, 1.0)


def spearman_interval(r: float, n: int) -> tuple[float, float]:
    """Return an interval of Spearman's r; the whole range for fewer than four rows.

    A perfect order counts as half a swap of neighbors short of perfect, as few rows are easily in order.
    """
    if n <= 3:
        return -1.0, 1.0
    limit = 1 - 6 / (n * (n * n - 1))
    low, high = _fisher(max(-limit, min(limit, r)), standard_error=math.sqrt((1 + r * r / 2) / (n - 3)))
    return min(low, r), max(high, r)


def _fisher(r: float, standard_error: float) -> tuple[float, float]:
    if abs(r) == 1.0:
        return r, r
    z = math.atanh(r)
    return math.tanh(z - Z_95 * standard_error), math.tanh(z + Z_95 * standard_error)
