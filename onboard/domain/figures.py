"""Figures about the jobs of a queue: how many ended recently, and how long they waited and ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from onboard.domain.job import JobState

HOUR: Final = 3600.0  # seconds
ENDED_STATES: Final = tuple(state for state in JobState if state.finished)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Median and 95th percentile in seconds, with linear interpolation; None without a sample.

    They equal numpy.percentile and PostgreSQL's percentile_cont.
    """

    p50: float | None
    p95: float | None


NO_SAMPLE: Final = Percentiles(None, None)


@dataclass(frozen=True, slots=True)
class Ended:
    """Figures of the jobs of one queue that ended in a window.

    Args:
        window_seconds: length of the window.
        counts: number of jobs by state; states with none may be omitted.
        last_hour: number of jobs that ended in its last hour.
        retries: attempts beyond the first, of all jobs together.
    """

    window_seconds: float
    counts: dict[JobState, int]
    last_hour: int
    retries: int
    wait: Percentiles
    run: Percentiles

    @classmethod
    def nothing(cls, window_seconds: float) -> Ended:
        """Return the figures of a window without jobs."""
        return cls(window_seconds, {}, 0, 0, NO_SAMPLE, NO_SAMPLE)

    @property
    def per_hour(self) -> float:
        """Jobs per hour in the last hour, extrapolated if the window is shorter."""
        return self.last_hour * max(HOUR / self.window_seconds, 1.0)

    @property
    def total(self) -> int:
        """Number of jobs that ended, in any state."""
        return sum(self.counts.values())
