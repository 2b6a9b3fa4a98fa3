"""Figures over the jobs of a queue: how many ended lately, and how long they waited and ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from onboard.domain.job import JobState

HOUR: Final = 3600.0  # seconds
ENDED_STATES: Final = tuple(state for state in JobState if state.finished)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Median and 95th percentile in seconds, between two neighbours linearly; None without a sample.

    They are what numpy.percentile and PostgreSQL's percentile_cont say.
    """

    p50: float | None
    p95: float | None


NO_SAMPLE: Final = Percentiles(None, None)


@dataclass(frozen=True, slots=True)
class EndedInHour:
    """How many jobs ended in one hour of the last day.

    Args:
        ago: of that hour's end, in whole hours; 0 is the last one.
    """

    ago: int
    succeeded: int = 0
    failed: int = 0

    def to_json(self) -> dict[str, int]:
        """The hour as a JSON-compatible document."""
        return {"hours_ago": self.ago, "succeeded": self.succeeded, "failed": self.failed}


@dataclass(frozen=True, slots=True)
class Ended:
    """What the jobs of one queue that ended in a window say.

    Args:
        window_seconds: how far the window reaches back.
        counts: how many ended in which state; states without any may be left out.
        last_hour: how many ended in the last hour of it.
        retries: attempts beyond the first, of all of them together.
    """

    window_seconds: float
    counts: dict[JobState, int]
    last_hour: int
    retries: int
    wait: Percentiles
    run: Percentiles

    @classmethod
    def nothing(cls, window_seconds: float) -> Ended:
        """That none ended."""
        return cls(window_seconds, {}, 0, 0, NO_SAMPLE, NO_SAMPLE)

    @property
    def per_hour(self) -> float:
        """How many ended in the last hour; where the window is shorter, as many as an hour of it would have."""
        return self.last_hour * max(HOUR / self.window_seconds, 1.0)

    @property
    def total(self) -> int:
        """How many ended, in whatever state."""
        return sum(self.counts.values())
