"""Use cases: find, cancel and retry jobs, pause queues, drain workers; documents about jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from onboard.contract.jobs import JobBrief, JobEventDocument, JobFacts, WaitingDocument
from onboard.contract.operations import RunningDocument
from onboard.domain.job import EVENTS_AT_ONCE, Job, JobEvent, JobState
from onboard.domain.names import did_you_mean
from onboard.errors import NotFoundError
from onboard.jobs.status import running_job, waiting
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.versions import VersionRepository
from onboard.registry.workers import QueueRepository, WorkerRepository

_ID: Final = re.compile(r"[0-9a-f]{12}")
_NOT_CANCELLED: Final = tuple(state for state in JobState if state is not JobState.CANCELLED)
_MOST_ALIKE: Final = 200  # number of recent jobs that a mistyped task name is compared with


def find_job(database: Database, name: str, *, cancelled: bool = False) -> Job:
    """Return the job with this id, or the newest job of the task with this name.

    Args:
        cancelled: whether a cancelled job counts as the newest; otherwise only if the task has no other.

    Raises:
        NotFoundError: neither exists.
    """
    with database.read() as session:
        jobs = JobRepository(session)
        for states in () if _ID.fullmatch(name) else (None if cancelled else _NOT_CANCELLED, None):
            for newest in jobs.list(task=name, states=states, limit=1):
                return newest
        try:
            return jobs.get(name)
        except NotFoundError as error:
            alike = did_you_mean(name, {job.spec.task for job in jobs.list(limit=_MOST_ALIKE)})
            raise NotFoundError("unknown-job-or-task", job=name, alike=alike) from error


def news_of(database: Database, job_id: str, since: int, limit: int = EVENTS_AT_ONCE) -> tuple[Job, Sequence[JobEvent]]:
    """Return the job and its events after `since`. Raises NotFoundError."""
    with database.read() as session:
        # Read the job first: all events from before its end are read after that.
        job = JobRepository(session).get(job_id)
        return job, EventRepository(session).list(job_id, since, limit)


def cancel(database: Database, name: str) -> Job:
    """Cancel a queued job at once, or a running one at its next step.

    Args:
        name: the job's id, or a task's name for its newest job.

    Raises:
        NotFoundError: the job does not exist.
        ConflictError: it has ended.
    """
    job = find_job(database, name)
    with database.write() as session:
        return JobRepository(session).cancel(job.id)


def retry(database: Database, name: str, time_limit_seconds: float | None = None) -> Job:
    """Queue a failed, cancelled or dead job again; it continues after its last finished stage. Does not wake a worker.

    Args:
        name: the job's id, or a task's name for its newest job.
        time_limit_seconds: new limit of an attempt; None keeps the old one.

    Raises:
        NotFoundError: the job does not exist.
        ConflictError: it is in another state.
        InputError: the time limit is invalid.
    """
    job = find_job(database, name, cancelled=True)
    with database.write() as session:
        return JobRepository(session).retry(job.id, time_limit_seconds=time_limit_seconds)


def set_paused(database: Database, queue: str, paused: bool) -> None:
    """Pause or resume a queue; does not wake a worker. Raises InputError."""
    with database.write() as session:
        QueueRepository(session).set_paused(queue, paused)


def drain(database: Database, worker: str) -> None:
    """Let a worker finish its job and exit. Raises NotFoundError."""
    with database.write() as session:
        WorkerRepository(session).drain(worker)


def brief(job: Job) -> dict[str, Any]:
    """Return the document of a job in a list."""
    return JobBrief.of_job(job, version=(job.result or {}).get("version")).to_json()


def report_document(database: Database, job: Job, since: int = 0) -> dict[str, Any]:
    """Return the data of a job's report: its row, its result and its events after `since`."""
    with database.read() as session:
        events = list(EventRepository(session).list(job.id, since))
        first = VersionRepository(session).provisional_of(job.id)
    standing = {} if first is None else {"provisional": {"version": first.version, "confirmed": False}}
    options = {key: value for key, value in job.spec.options.items() if key != "dataset_report"}
    fields = (job.spec.options.get("dataset_report") or {}).get("fields")  # the columns that the rows were read from
    return {
        **JobFacts.of_job(job).to_json(),
        "spec": {**job.spec.to_json(), "options": options},
        "fields": fields,
        **standing,
        **(job.result or {}),
        "state": job.state.value,
        "events": [JobEventDocument.of(event).to_json() for event in events],
    }


def full_document(database: Database, job: Job, since: int = 0) -> dict[str, Any]:
    """Return the report document plus why the job waits, or its progress."""
    running = running_job(database, job)
    wait = waiting(database, job) if running is None else None
    return {
        **report_document(database, job, since),
        "waiting": WaitingDocument.of_waiting(wait).to_json() if wait else None,
        "running": RunningDocument.of_running(running).to_json() if running else None,
    }
