"""Waiting for a job: its events, each once, whatever the connection does in between; and what its end means."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from onboard.client.answers import JobEventSeen, JobStatus
from onboard.domain.job import JobState, job_failure
from onboard.errors import CancelledError, JobFailedError, UnavailableError

if TYPE_CHECKING:
    from onboard.client.service import Onboard

_LOOK_SECONDS: Final = 1.0  # between two looks at a job whose events have ended
_AWAY_SECONDS: Final = 2.0


def followed(
    service: Onboard, job: str, timeout_seconds: float | None, sleep: Callable[[float], None]
) -> Iterator[JobEventSeen]:
    """The events of a job until it has ended. A service that goes away meanwhile is waited for.

    Raises:
        UnavailableError: the time is over. It is looked at whenever something is heard, every 15 s at least.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    seen = 0
    while True:
        pause = _LOOK_SECONDS
        try:
            for event in service._heard(job, seen):
                if event is not None:
                    seen = event.id
                    yield event
                if _over(deadline):
                    break
            if service.job(job).state.finished:
                return
        except UnavailableError:
            pause = _AWAY_SECONDS
        if _over(deadline):
            raise UnavailableError(
                f"Job {job} has not ended within {timeout_seconds:g} s.", f"onboard jobs watch {job}", job=job
            )
        sleep(pause)


def require_success(job: JobStatus) -> JobStatus:
    """The job, if it succeeded. Raises JobFailedError, CancelledError."""
    if job.state is JobState.SUCCEEDED:
        return job
    kind = CancelledError if job.state is JobState.CANCELLED else JobFailedError
    raise job_failure(job.id, job.state, job.document.get("error"), kind)


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
