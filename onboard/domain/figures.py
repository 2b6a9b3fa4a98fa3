"""Figures about the jobs of a queue: how many ended recently, and how long they waited and ran."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.job import JobState
from onboard.domain.moment import rounded, to_iso
from onboard.domain.worker import QueueStatus

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
class EndedInHour:
    """Number of jobs that ended in one hour of the last day.

    Args:
        ago: age of that hour's end, in whole hours; 0 is the last hour.
    """

    ago: int
    succeeded: int = 0
    failed: int = 0

    def to_json(self) -> dict[str, int]:
        """Return the hour as a JSON-compatible document."""
        return {"hours_ago": self.ago, "succeeded": self.succeeded, "failed": self.failed}


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

    def to_json(self) -> dict[str, Any]:
        """Return the figures as a JSON-compatible document."""
        return {
            "window_seconds": round(self.window_seconds, 3),
            "ended": self.total,
            "ended_per_hour": round(self.per_hour, 3),
            **{state.value: self.counts.get(state, 0) for state in ENDED_STATES},
            "retries": self.retries,
            "wait_p50_seconds": rounded(self.wait.p50),
            "wait_p95_seconds": rounded(self.wait.p95),
            "run_p50_seconds": rounded(self.run.p50),
            "run_p95_seconds": rounded(self.run.p95),
        }


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A queue as operators see it.

    Args:
        live_workers: live workers that take its jobs; draining ones do not.
    """

    status: QueueStatus
    live_workers: int
    recent: Ended

    @property
    def unserved(self) -> bool:
        """Whether jobs wait that no worker will take, including those of dead workers."""
        return self.status.queued + self.status.lost > 0 and self.live_workers == 0

    def to_json(self) -> dict[str, Any]:
        """Return the queue as a JSON-compatible document; `recent` covers the window only."""
        return {
            **self.status.to_json(),
            "live_workers": self.live_workers,
            "unserved": self.unserved,
            "recent": self.recent.to_json(),
        }


@dataclass(frozen=True, slots=True)
class QueuesSeen:
    """All queues at one moment of the database's clock."""

    at: float
    queues: Sequence[QueueFigures]

    def to_json(self) -> dict[str, Any]:
        """Return the queues as a JSON-compatible document."""
        return {"at": to_iso(self.at), "queues": [queue.to_json() for queue in self.queues]}
