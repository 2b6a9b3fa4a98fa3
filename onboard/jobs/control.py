"""Use cases: looking up, cancelling and retrying jobs, and the documents that every door shows of them."""

from __future__ import annotations

import re
from typing import Any, Final

from onboard.domain.job import Job
from onboard.errors import NotFoundError
from onboard.jobs.status import running_job, waiting
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository

_ID: Final = re.compile(r"[0-9a-f]{12}")


def find_job(database: Database, name: str) -> Job:
    """The job of that id, or the newest job of that task.

    Raises:
        NotFoundError: neither exists.
    """
    with database.read() as session:
        jobs = JobRepository(session)
        newest = [] if _ID.fullmatch(name) else jobs.list(task=name, limit=1)
        if newest:
            return newest[0]
        try:
            return jobs.get(name)
        except NotFoundError as error:
            raise NotFoundError(
                f"There is no job or task with jobs called {name!r}.", "onboard jobs list", job=name
            ) from error


def cancel(database: Database, name: str) -> Job:
    """Cancel a queued job at once, a running one at its next step.

    Args:
        name: the job's id, or a task's name for its newest job.

    Raises:
        NotFoundError: there is no such job.
        ConflictError: it has ended.
    """
    job = find_job(database, name)
    with database.write() as session:
        return JobRepository(session).cancel(job.id)


def retry(database: Database, name: str, time_limit_seconds: float | None = None) -> Job:
    """Queue a failed, cancelled or dead job again; it goes on after its last finished stage. Nobody is woken by it.

    Args:
        name: the job's id, or a task's name for its newest job.
        time_limit_seconds: of an attempt from now on; None leaves it as it was.

    Raises:
        NotFoundError: there is no such job.
        ConflictError: it is none of these.
        InputError: the time limit is none.
    """
    job = find_job(database, name)
    with database.write() as session:
        return JobRepository(session).retry(job.id, time_limit_seconds=time_limit_seconds)


def brief(job: Job) -> dict[str, Any]:
    """A job in a list."""
    document = job.to_json()
    for key in ("spec", "result"):
        document.pop(key)
    return {**document, "version": (job.result or {}).get("version")}


def report_document(database: Database, job: Job, since: int = 0) -> dict[str, Any]:
    """The job's row, its result and its events after `since`: what its report is made of."""
    with database.read() as session:
        events = list(EventRepository(session).list(job.id, since))
    document = job.to_json()
    result = document.pop("result") or {}
    document["spec"]["options"] = {key: value for key, value in job.spec.options.items() if key != "dataset_report"}
    return {**document, **result, "state": job.state.value, "events": [event.to_json() for event in events]}


def full_document(database: Database, job: Job, since: int = 0) -> dict[str, Any]:
    """The same with why it waits and where it is."""
    running = running_job(database, job)
    wait = waiting(database, job) if running is None else None
    return {
        **report_document(database, job, since),
        "waiting": wait.to_json() if wait else None,
        "running": running.to_json() if running else None,
    }
