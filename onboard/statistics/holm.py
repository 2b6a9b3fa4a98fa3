"""Holm's step-down correction (1979) for multiple hypotheses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm_levels(p_values: Sequence[float], level: float) -> list[float]:
    """Return the level of each of T hypotheses for a family-wise level of `level`.

    The smallest p-value is compared with level / T, the next one with level / (T − 1), and so on; after the first
    failure, nothing more is rejected. A hypothesis is rejected exactly if its p-value is at most its level.
    """
    levels = [level] * len(p_values)
    failed: int | None = None
    for place, index in enumerate(np.argsort(p_values, kind="stable").tolist()):
        steps = place if failed is None else failed
        levels[index] = level / (len(p_values) - steps)
        if failed is None and p_values[index] > levels[index]:
            failed = place
    return levels
