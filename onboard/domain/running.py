"""A running job as operators see it: its worker, its progress, and how long it still takes."""

from __future__ import annotations

from dataclasses import dataclass

from onboard.domain.forecast import TimeLeft
from onboard.domain.job import Job


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """The current attempt of a running job; durations in seconds by the database's clock.

    Args:
        seconds: since it was claimed.
        stage_seconds: since it entered its stage; None before the first.
        note: the last line of progress inside the stage, or empty.
        lease_seconds: until the lease expires; negative if it has.
    """

    job: Job
    seconds: float
    stage_seconds: float | None
    note: str
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A running job, its worker and the forecast.

    Args:
        host: machine of the worker; None if the worker's row is deleted. `heartbeat_age_seconds` likewise.
    """

    attempt: RunningAttempt
    host: str | None
    heartbeat_age_seconds: float | None
    left: TimeLeft
