"""Figures over the jobs of a queue: how many ended lately, and how long they waited and ran."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.job import JobState
from onboard.domain.moment import rounded, to_iso
from onboard.domain.worker import QueueStatus

_HOUR: Final = 3600.0  # seconds
ENDED_STATES: Final = tuple(state for state in JobState if state.finished)


@dataclass(frozen=True, slots=True)
class EndedJob:
    """A job that a worker ran and that ended lately; durations in seconds.

    Args:
        wait_seconds: from when it was due to its first start.
        run_seconds: from its first start to its end, whatever attempts and pauses lay between.
        attempts: claims it took.
        ago_seconds: since its end.
    """

    queue: str
    state: JobState
    attempts: int
    wait_seconds: float
    run_seconds: float
    ago_seconds: float


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Median and 95th percentile in seconds; None without a sample."""

    p50: float | None
    p95: float | None

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Percentiles:
        """Of a sample in any order."""
        return cls(percentile(seconds, 0.5), percentile(seconds, 0.95))


@dataclass(frozen=True, slots=True)
class Ended:
    """What the jobs of one queue that ended in a window say.

    Args:
        window_seconds: how far the window reaches back.
        counts: how many ended in which state.
        per_hour: how many ended in the last hour; where the window is shorter, as many as an hour of it would have.
        retries: attempts beyond the first, of all of them together.
    """

    window_seconds: float
    counts: dict[JobState, int]
    per_hour: float
    retries: int
    wait: Percentiles
    run: Percentiles

    @classmethod
    def of(cls, jobs: Sequence[EndedJob], window_seconds: float) -> Ended:
        """The figures of one queue's jobs."""
        counted = Counter(job.state for job in jobs)
        lately = sum(job.ago_seconds < _HOUR for job in jobs)
        return cls(
            window_seconds=window_seconds,
            counts={state: counted[state] for state in ENDED_STATES},
            per_hour=lately * max(_HOUR / window_seconds, 1.0),
            retries=sum(job.attempts - 1 for job in jobs),
            wait=Percentiles.of([job.wait_seconds for job in jobs]),
            run=Percentiles.of([job.run_seconds for job in jobs]),
        )

    @property
    def total(self) -> int:
        """How many ended, in whatever state."""
        return sum(self.counts.values())

    def to_json(self) -> dict[str, Any]:
        """The figures as a JSON-compatible document."""
        return {
            "window_seconds": round(self.window_seconds, 3),
            "ended": self.total,
            "ended_per_hour": round(self.per_hour, 3),
            **{state.value: count for state, count in self.counts.items()},
            "retries": self.retries,
            "wait_p50_seconds": rounded(self.wait.p50),
            "wait_p95_seconds": rounded(self.wait.p95),
            "run_p50_seconds": rounded(self.run.p50),
            "run_p95_seconds": rounded(self.run.p95),
        }


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A queue as the ops team sees it.

    Args:
        live_workers: live workers that take its jobs; those that drain do not.
    """

    status: QueueStatus
    live_workers: int
    recent: Ended

    @property
    def unserved(self) -> bool:
        """Whether jobs wait that nobody will take, those that a dead worker left among them."""
        return self.status.queued + self.status.lost > 0 and self.live_workers == 0

    def to_json(self) -> dict[str, Any]:
        """The queue as a JSON-compatible document; the figures of `recent` are those of the window only."""
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
        """The queues as a JSON-compatible document."""
        return {"at": to_iso(self.at), "queues": [queue.to_json() for queue in self.queues]}


def percentile(sample: Sequence[float], share: float) -> float | None:
    """The value below which `share` of the sample lies, between two neighbours linearly; None of nothing.

    It is what numpy.percentile and PostgreSQL's percentile_cont say.
    """
    if not sample:
        return None
    ordered = sorted(sample)
    place = share * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))
