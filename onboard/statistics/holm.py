"""Holm's step-down correction (1979): what several hypotheses at once ask of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm_levels(p_values: Sequence[float], level: float) -> list[float]:
    """The level at which each of T hypotheses is judged so that all together are judged at `level`.

    The smallest p-value is held against level / T, the next against level / (T − 1),
    and so on; from the first that fails on, nothing more is rejected. A hypothesis is rejected just where its p-value
    is at most its level.
    """
    levels = [level] * len(p_values)
    failed: int | None = None
    for place, index in enumerate(np.argsort(p_values, kind="stable").tolist()):
        steps = place if failed is None else failed
        levels[index] = level / (len(p_values) - steps)
        if failed is None and p_values[index] > levels[index]:
            failed = place
    return levels
