"""Forecast how long a job still takes, from similar jobs; unknown without any."""

from __future__ import annotations

import heapq
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from onboard.domain.counting import counted
from onboard.domain.job import Stage

_ORDER: Final = tuple(Stage)
# Stages with a duration that does not depend on the dataset: tuning has fixed steps, the guard checks other tasks.
_FIXED: Final = frozenset({Stage.CHECK, Stage.TUNE, Stage.GUARD, Stage.PUBLISH})


@dataclass(frozen=True, slots=True)
class JobTraits:
    """Properties that two jobs must share for one to predict the duration of the other.

    Args:
        queue: represents a class of devices.
        tuning: value of `--tune-hypernetwork`.
        method: value of `--method`; empty by default.
    """

    queue: str
    base: str | None
    tuning: str
    method: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """The duration of a successful job.

    Args:
        size: amount of work of its dataset, in any unit; None if unknown.
        stages: seconds by stage.
    """

    likeness: JobTraits
    size: float | None
    stages: Mapping[Stage, float]


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """A forecast and its basis, or why there is none.

    Args:
        seconds: None if unknown.
        basis: "3 similar jobs", "the size of its dataset", or the reason why it is unknown.
    """

    seconds: float | None
    basis: str


def similar(likeness: JobTraits, size: float | None, timings: Sequence[Timing]) -> list[Timing]:
    """Return the timings of similar jobs. Sizes are compared only if both are known."""
    return [timing for timing in timings if timing.likeness == likeness and (timing.size is None) == (size is None)]


def time_left(stage: Stage | None, stage_seconds: float, size: float | None, timings: Sequence[Timing]) -> TimeLeft:
    """Forecast how long a job still takes.

    Args:
        stage: its current stage; None before the first.
        stage_seconds: time spent in that stage.
        size: amount of work of its dataset.
        timings: timings of similar jobs.
    """
    if not timings:
        return TimeLeft(None, "no similar job has succeeded lately")
    expected = _expected(size, timings)
    basis = counted(len(timings), "similar job")
    if stage is None:
        return TimeLeft(sum(expected.values()), basis)
    if stage not in expected:
        return TimeLeft(None, f"no similar job went through {stage.value}")
    if stage_seconds > expected[stage]:
        return TimeLeft(None, f"{stage.value} takes longer than it did for {basis}")
    later = _ORDER[_ORDER.index(stage) + 1 :]
    return TimeLeft(expected[stage] - stage_seconds + sum(expected.get(following, 0.0) for following in later), basis)


def _expected(size: float | None, timings: Sequence[Timing]) -> dict[Stage, float]:
    """Return seconds by stage: the median of the similar jobs, each scaled to this job's size."""
    by_stage: dict[Stage, list[float]] = {}
    for timing in timings:
        scale = size / timing.size if size is not None and timing.size else 1.0
        for stage, seconds in timing.stages.items():
            by_stage.setdefault(stage, []).append(seconds if stage in _FIXED else seconds * scale)
    return {stage: statistics.median(times) for stage, times in by_stage.items()}


def starts_in(ahead: int, free_in_seconds: Sequence[float | None], run_seconds: float | None) -> float | None:
    """Forecast when the job behind `ahead` others is claimed, in seconds; None if unknown.

    Args:
        free_in_seconds: for each worker of the queue, 0 if it is idle, None if the end of its job is unknown.
        run_seconds: typical duration of a job of the queue.
    """
    if sum(seconds == 0.0 for seconds in free_in_seconds) > ahead:
        return 0.0
    free = [seconds for seconds in free_in_seconds if seconds is not None]
    if not free or len(free) < len(free_in_seconds) or (ahead and run_seconds is None):
        return None
    heapq.heapify(free)
    for _ in range(ahead):
        heapq.heapreplace(free, free[0] + (run_seconds or 0.0))
    return free[0]
