"""A running job as the ops team sees it: who works on it, where it is, and how long it still takes."""

from __future__ import annotations

from dataclasses import dataclass

from onboard.domain.forecast import TimeLeft
from onboard.domain.job import Job


@dataclass(frozen=True, slots=True)
class Attempt:
    """What the registry knows of a running job's present attempt; durations in seconds by the database's clock.

    Args:
        seconds: since it was claimed.
        stage_seconds: since it entered its stage; None before the first.
        note: the last line of progress inside the stage, or empty.
        lease_seconds: until the lease runs out; negative when it has.
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
        host: machine of the worker; None when the worker's row is gone. `heartbeat_age_seconds` likewise.
    """

    attempt: Attempt
    host: str | None
    heartbeat_age_seconds: float | None
    left: TimeLeft
