"""A running job as operators see it: its worker, its progress, and how long it still takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onboard.domain.forecast import TimeLeft
from onboard.domain.job import Job
from onboard.domain.moment import rounded


@dataclass(frozen=True, slots=True)
class Attempt:
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

    attempt: Attempt
    host: str | None
    heartbeat_age_seconds: float | None
    left: TimeLeft

    def to_json(self) -> dict[str, Any]:
        """Return the job as a JSON-compatible document."""
        job, age = self.attempt.job, self.heartbeat_age_seconds
        return {
            "job": job.id,
            "task": job.spec.task,
            "queue": job.queue,
            "worker": job.worker,
            "host": self.host,
            "heartbeat_age_seconds": rounded(age, 1),
            "lease_left_seconds": round(self.attempt.lease_seconds, 1),
            **progress_json(self),
        }


def progress_json(running: RunningJob | None) -> dict[str, Any]:
    """Return the progress of a running job as a JSON-compatible document; the same keys with null for no job."""
    attempt = running.attempt if running else None
    left = running.left if running else None
    stage = attempt.job.stage if attempt else None
    return {
        "stage": stage.value if stage else None,
        "attempt": attempt.job.attempt if attempt else None,
        "max_attempts": attempt.job.max_attempts if attempt else None,
        "attempt_seconds": round(attempt.seconds, 1) if attempt else None,
        "stage_seconds": rounded(attempt.stage_seconds, 1) if attempt else None,
        "note": attempt.note if attempt else None,
        "left_seconds": rounded(left.seconds, 1) if left else None,
        "left_basis": left.basis if left else None,
    }
