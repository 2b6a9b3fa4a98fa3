"""Intervals over seeds (Student's t), and over tasks and the measurements of each (the bootstrap)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

import numpy as np

from onboard.statistics.bootstrap import draws_of_groups
from onboard.statistics.student import half_interval

LEAST_TASKS, LEAST_CELLS = 2, 4  # of an interval: with fewer it would have no width, or next to none
_DRAWS: Final = 2000


def seeds_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95% interval over seeds (Student's t); without width for a single seed."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, mean, mean
    half = half_interval(np.array(values))
    return mean, mean - half, mean + half


def shown(values: Sequence[float]) -> str:
    """`71.3 (70.1 to 72.5)`."""
    mean, low, high = seeds_interval(values)
    return f"{mean:.1f} ({low:.1f} to {high:.1f})" if len(values) > 1 else f"{mean:.1f}"


def interval(gain: np.ndarray, tasks: Sequence[str]) -> tuple[float, float] | None:
    """95% interval of the mean, by drawing tasks and cells within them; None of fewer than 2 tasks or 4 cells."""
    if len(set(tasks)) < LEAST_TASKS or len(tasks) < LEAST_CELLS:
        return None
    named = np.array(tasks)
    groups = [np.flatnonzero(named == task) for task in dict.fromkeys(tasks)]
    means = [gain[chosen].mean() for chosen in draws_of_groups(groups, _DRAWS)]
    low, high = np.percentile(means, (2.5, 97.5))
    return float(low), float(high)


def mean_shown(gain: np.ndarray, tasks: Sequence[str], digits: int = 1) -> str:
    """`+1.2 (+0.3 to +2.1)`: the mean with its sign, and its `interval` where there is one."""
    between = interval(gain, tasks)
    reach = f" ({between[0]:+.{digits}f} to {between[1]:+.{digits}f})" if between else ""
    return f"{gain.mean():+.{digits}f}{reach}"
