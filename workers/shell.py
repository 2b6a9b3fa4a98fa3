"""The task's shell: claim one job, run the pipeline on it, say how it ended. The queue's library has no part in it."""

from __future__ import annotations

import importlib
import logging
import os
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from onboard.domain.job import HEARTBEAT_SECONDS, LEASE_SECONDS, Job, JobState
from onboard.domain.progress import Progress
from onboard.domain.worker import Trouble
from onboard.errors import CancelledError, FencedError, JobFailedError, OnboardError, SlotTakenError
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.passed import PassedRepository
from onboard.registry.services import Services
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings
from workers.faults import TroubleError, broken_machine, passing_trouble, require_own_release, trouble_of
from workers.logs import fields_of, hide_places, log_fields
from workers.progress import RegistryProgress, job_heartbeat
from workers.traced import traced

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_logger = logging.getLogger(__name__)
_TURN_SECONDS: Final = 5.0  # until a job that waits for its turn looks again
_RETRY_SECONDS: Final = 5.0  # before the second attempt after a retryable error; four times as long before each next

RunJob = Callable[[Job, Services, Progress], None]


class Pipeline(Protocol):
    """The interface of the module named by `WorkerPlan.pipeline`."""

    def run(self, job: Job, services: Services, progress: Progress) -> None:
        """Run a claimed job until it is published."""

    def preload(self, services: Services) -> None:
        """Load what every job needs, once per process."""


def load_pipeline(module: str) -> Pipeline:
    """Import the pipeline's module."""
    return cast(Pipeline, importlib.import_module(module))


def work(
    services: Services,
    worker: str,
    queues: Sequence[str],
    run: RunJob,
    *,
    lease_seconds: float = LEASE_SECONDS,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    tracing: TracerProvider | None = None,
) -> Job | None:
    """Claim the most urgent runnable job of `queues` and run it to an end; `tracing` makes a span of the attempt.

    Returns:
        The job as it stands afterwards (perhaps owned by another attempt by then); None when there was nothing to do.

    Raises:
        TroubleError: this worker cannot run the job, which waits for another one now.
    """
    job = _claimed(services, worker, queues, lease_seconds)
    if job is None:
        return None
    trouble: Trouble | None = None
    with log_fields(**fields_of(job)):
        _logger.info("The attempt starts")
        with job_heartbeat(services.database, job, lease_seconds, heartbeat_seconds) as heartbeat:
            try:
                progress = RegistryProgress(services.database, job, heartbeat)
                way = _answering_files(lease_seconds) if job.spec.is_bulk else run
                trouble = _attempt(job, services, progress, partial(_traced, way, tracing))
            except FencedError as error:
                _logger.warning("Work dropped: %s", error.message)
        with services.database.read() as session:
            after = JobRepository(session).get(job.id)
        _logger.info("The attempt has ended; the job is %s", after.state.value)
        if trouble is not None:
            raise TroubleError(trouble)
        return after


def _claimed(services: Services, worker: str, queues: Sequence[str], lease_seconds: float) -> Job | None:
    """A job that this worker has not passed on; else one that it has, where no other worker is left to run it."""
    with services.database.write() as session:
        require_own_release(session)
        claim = partial(
            ClaimRepository(session).claim,
            worker,
            queues,
            pid=os.getpid(),
            lease_seconds=lease_seconds,
            time_limit_seconds=services.settings.job_time_limit_seconds,
        )
        job = claim()
        for passed in PassedRepository(session).passed(worker, queues) if job is None else ():
            if job is None and not WorkerRepository(session).able(passed.queue, {worker, *passed.passed_by}):
                job = claim(only=passed.id)
    return job


def _answering_files(lease_seconds: float) -> RunJob:
    from onboard.serving.bulk.job import run_bulk

    return partial(run_bulk, lease_seconds=lease_seconds)


def _traced(run: RunJob, tracing: TracerProvider | None, job: Job, services: Services, progress: Progress) -> None:
    with traced(tracing, job, progress) as watched:
        run(job, services, watched)


def _attempt(job: Job, services: Services, progress: Progress, run: RunJob) -> Trouble | None:
    """Run it to an end. Returns what keeps this worker, not the job, from going on."""
    try:
        run(job, services, progress)
        _require_published(job, services)
    except FencedError:
        raise
    except CancelledError as error:
        _end(job, services, JobState.CANCELLED, error.outside.to_json())
    except SlotTakenError as error:
        _put_off(job, services, error)
    except OnboardError as error:
        if error.retryable:
            _retry_later(job, services, error)
        elif (outdated := _outdated(job, services)) is not None:
            return outdated
        elif _passed_on(job, services, error):
            return trouble_of(error)
        else:
            _logger.error("%s %s", error.message, error.remedy)
            _end(job, services, JobState.FAILED, error.outside.to_json())
    except Exception as error:  # the process's outermost edge: whatever a job does, the worker goes on
        _logger.exception("The job failed unexpectedly")
        return _outdated(job, services) or _unexpectedly(job, services, error)
    return None


def _outdated(job: Job, services: Services) -> Trouble | None:
    """Return why this worker cannot work any more, if the schema has changed meanwhile; its job is queued again."""
    try:
        with services.database.read() as session:
            require_own_release(session)
    except TroubleError as error:
        with services.database.write() as session:
            ClaimRepository(session).release(job.id, job.attempt)
        return error.trouble
    return None


def _passed_on(job: Job, services: Services, error: OnboardError) -> bool:
    """Whether it waits for another worker now: this one's machine is broken, or lacks what another one may have."""
    if error.fault == "job":
        return False
    assert job.worker is not None
    with services.database.write() as session:
        claims = ClaimRepository(session)
        others = WorkerRepository(session).able(job.queue, {job.worker, *PassedRepository(session).passed_by(job.id)})
        if error.fault == "place" and not others:
            return False
        claims.pass_on(job.id, job.attempt, job.worker, error.outside.to_json())
    _logger.error("%s %s The job returns to the queue.", error.message, error.remedy)
    return True


def _unexpectedly(job: Job, services: Services, error: Exception) -> Trouble | None:
    """End the job for an error that nobody foresaw, unless the machine is to blame for it."""
    passing, trouble = passing_trouble(error), broken_machine(error)
    if passing is not None:
        _retry_later(job, services, passing)
    elif trouble is not None:
        assert job.worker is not None
        document = {"code": "error", "message": hide_places(trouble.message, services.settings), "remedy": ""}
        with services.database.write() as session:
            ClaimRepository(session).pass_on(job.id, job.attempt, job.worker, document)
    else:
        _end(job, services, JobState.FAILED, _unexpected(job, services.settings, error))
    return trouble


def _require_published(job: Job, services: Services) -> None:
    with services.database.read() as session:
        after = JobRepository(session).get(job.id)
    if after.state is JobState.RUNNING and after.attempt == job.attempt:
        raise JobFailedError("nothing-published", job=job.id)


def _end(job: Job, services: Services, state: JobState, error: dict[str, Any]) -> None:
    with services.database.write() as session:
        ClaimRepository(session).finish(job.id, job.attempt, state, error=error)


def _put_off(job: Job, services: Services, error: SlotTakenError) -> None:
    _logger.info("%s Checking again in %.0f s.", error.message, _TURN_SECONDS)
    with services.database.write() as session:
        ClaimRepository(session).put_off(job.id, job.attempt, error.to_json(), _TURN_SECONDS)


def _retry_later(job: Job, services: Services, error: OnboardError) -> None:
    delay = _RETRY_SECONDS * 4 ** (job.counted_attempt - 1)
    _logger.warning("%s Trying again in %.0f s.", error.message, delay)
    with services.database.write() as session:
        ClaimRepository(session).retry_later(job.id, job.attempt, error.outside.to_json(), delay)


def _unexpected(job: Job, settings: Settings, error: Exception) -> dict[str, Any]:
    """Whoever may read the job may read this: the places of the service are in its log only."""
    return {
        "code": "error",
        "message": hide_places(f"{type(error).__name__}: {error}", settings),
        "remedy": f"This is a bug. Traceback: onboard jobs show {job.id} --json",
        "trace": [hide_places(part, settings) for part in traceback.format_exception(error)[-6:]],
    }
