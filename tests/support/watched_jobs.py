"""Jobs and workers with a past, for tests of what people see: written as rows, with ages instead of waiting."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import insert, text, update

from onboard import __version__
from onboard.domain.job import LEASE_SECONDS, Job, JobState, Stage, new_job_id
from onboard.domain.worker import WorkerState
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import JobEventRow, JobRow, WorkerRow
from onboard.registry.workers import WorkerRepository
from support.registry_samples import sample_spec

BASE_DIGEST = "sha256:base"
STAGES = {"check": 1.0, "probe": 10.0, "train": 20.0, "evaluate": 5.0, "publish": 2.0}


def ended(
    database: Database,
    *,
    ago: float,
    wait: float = 0.0,
    run: float | None = 10.0,
    queue: str = "default",
    state: JobState = JobState.SUCCEEDED,
    attempts: int = 1,
    stages: Mapping[str, float] | None = None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """A job that ended `ago` seconds ago, after it had waited and run for so long; `run=None`: it never started."""
    job_id, spec = new_job_id(), sample_spec(**{"base_digest": BASE_DIGEST, **(options or {})})
    end = database_now() - ago
    due = database_now() - (ago + (run or 0.0) + wait)
    row = {
        "id": job_id, "spec": spec.to_json(), "task": spec.task, "state": state, "queue": queue, "priority": 0,
        "attempt": attempts, "max_attempts": 3, "cancel_requested": False, "created_at": due, "not_before_at": due,
        "started_at": None if run is None else database_now() - (ago + run), "finished_at": end,
        "result": {"seconds": dict(stages or STAGES)} if state is JobState.SUCCEEDED else None,
    }  # fmt: skip
    with database.write() as session:
        session.execute(insert(JobRow).values(**row))
    return job_id


def ended_together(database: Database, count: int, state: JobState) -> None:
    """So many jobs that ended just now, and could be tried again."""
    spec, now = sample_spec(), time.time()
    row = {
        "spec": spec.to_json(), "task": spec.task, "state": state, "queue": "default", "priority": 0, "attempt": 1,
        "max_attempts": 3, "cancel_requested": False, "created_at": now - 60, "not_before_at": now - 60,
        "started_at": now - 30, "finished_at": now,
    }  # fmt: skip
    with database.write() as session:
        session.execute(insert(JobRow), [{**row, "id": new_job_id()} for _ in range(count)])


def ended_long_ago(database: Database, *, count: int) -> None:
    """So many jobs that ended in 1970, and a database that has counted its rows."""
    rows = [
        {
            "id": new_job_id(), "spec": {}, "task": "old", "state": JobState.SUCCEEDED, "queue": "default",
            "priority": 0, "attempt": 1, "max_attempts": 3, "cancel_requested": False, "created_at": 0.0,
            "not_before_at": 0.0, "started_at": 0.0, "finished_at": 60.0,
        }
        for _ in range(count)
    ]  # fmt: skip
    with database.write() as session:
        session.execute(insert(JobRow), rows)
        session.execute(text("ANALYZE"))


def queued(
    database: Database,
    *,
    ago: float = 0.0,
    queue: str = "default",
    priority: int = 0,
    base: str = "mini",
    init: str = "auto",
    **options: Any,
) -> Job:
    """A job that was submitted `ago` seconds ago and waits since."""
    spec = replace(sample_spec(**{"base_digest": BASE_DIGEST, **options}), base=base, init=init)
    with database.write() as session:
        job, _ = JobRepository(session).add(spec, queue=queue, priority=priority)
        _set(session, job.id, created_at=database_now() - ago, not_before_at=database_now() - ago)
        return JobRepository(session).get(job.id)


def running(
    database: Database,
    worker: str,
    *,
    ago: float = 0.0,
    stage: Stage | None = None,
    stage_ago: float = 0.0,
    note: str = "",
    queue: str = "default",
    base: str = "mini",
    init: str = "auto",
    lease_left: float = LEASE_SECONDS,
    **options: Any,
) -> Job:
    """A job that `worker` claimed `ago` seconds ago; it has been in `stage` for `stage_ago` seconds."""
    job = queued(database, ago=ago, queue=queue, priority=1000, base=base, init=init, **options)
    with database.write() as session:
        claims = ClaimRepository(session)
        claimed = claims.claim(worker, [queue])
        assert claimed is not None
        assert claimed.id == job.id
        since = database_now() - ago
        _set(session, job.id, started_at=since, claimed_at=since, lease_expires_at=database_now() + lease_left)
        events = EventRepository(session)
        if stage is not None:
            _set(session, job.id, stage=stage.value)
            events.append(job.id, claimed.attempt, "stage_started", f"{stage.value} started", stage=stage)
            session.execute(
                update(JobEventRow)
                .where(JobEventRow.job == job.id, JobEventRow.kind == "stage_started")
                .values(at=database_now() - stage_ago)
            )
        if note:
            events.append(job.id, claimed.attempt, "note", note, stage=stage)
        return JobRepository(session).get(job.id)


def worker(
    database: Database,
    name: str,
    *,
    state: WorkerState = WorkerState.RUNNING,
    queues: tuple[str, ...] = ("default",),
    silent: float = 0.0,
    device: str = "cpu",
    **facts: Any,
) -> None:
    """A worker that was last heard of `silent` seconds ago."""
    with database.write() as session:
        all_facts = {"onboard": __version__, **facts}
        WorkerRepository(session).enter(name, state, queues=queues, host="box", device=device, pid=7, facts=all_facts)
        silence = update(WorkerRow).where(WorkerRow.name == name).values(heartbeat_at=database_now() - silent)
        session.execute(silence)


def _set(session: Any, job_id: str, **values: Any) -> None:
    session.execute(update(JobRow).where(JobRow.id == job_id).values(**values))
