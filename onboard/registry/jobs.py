"""The submitter's and operator's view of jobs: add, look up, cancel, retry."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Double, Select, SQLColumnExpression, func, literal_column, select, tuple_, update
from sqlalchemy.orm import Session

from onboard.domain.job import (
    MAX_ATTEMPTS,
    Job,
    JobSpec,
    JobState,
    Stage,
    new_job_id,
    require_time_limit,
    require_transition,
)
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.domain.names import require_name
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.audit import record
from onboard.registry.clock import database_now
from onboard.registry.events import EventRepository
from onboard.registry.quotas import QuotaRepository
from onboard.registry.repository import Repository, record_of
from onboard.registry.shards import ShardRepository
from onboard.registry.states import IS_OPEN
from onboard.registry.tables import RUN_OF_JOB, WAIT_OF_JOB, JobRow
from onboard.registry.turns import next_turn
from onboard.registry.upsert import insert_for

Edge = tuple[float | str, ...]
"""Sort key of the last job of a page: its number, preceded by the key of any other order."""


class JobRepository(Repository):
    """The jobs of a deployment. Claims by workers are in `ClaimRepository`."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._events = EventRepository(session)

    def add(
        self,
        spec: JobSpec,
        *,
        queue: str = "default",
        priority: int = 0,
        key: str | None = None,
        owner: str | None = None,
        max_attempts: int = MAX_ATTEMPTS,
        time_limit_seconds: float | None = None,
        artifacts: Collection[str] = (),
    ) -> tuple[Job, bool]:
        """Queue a job. Returns it, and whether it is new.

        Args:
            key: idempotency key: the same key with the same spec returns the earlier job.
            time_limit_seconds: time limit of an attempt; None uses the worker's default.
            artifacts: digests of the files stored for the job, which count for its owner.

        Raises:
            ConflictError: another spec was submitted with this key.
            QuotaError: the owner has reached its limit of jobs or bytes.
            InputError: the queue name or the time limit is invalid.
        """
        require_name(queue, "queue name")
        require_time_limit(time_limit_seconds)
        columns = {"queue": queue, "priority": priority, "key": key, "owner": owner, "max_attempts": max_attempts}
        turn = next_turn(queue, priority, owner)
        row = self._insert(spec, time_limit_seconds=time_limit_seconds, turn=turn, **columns)
        if row is None:
            assert key is not None  # only a key can conflict
            return self._earlier(key, spec), False
        QuotaRepository(self._session).admit_job(owner, artifacts)
        self._events.append(row.id, 0, "state", JobState.QUEUED)
        record(self._session, "job.submit", row.id, task=spec.task, queue=queue)
        return to_job(row), True

    def _insert(self, spec: JobSpec, **columns: object) -> JobRow | None:
        """Insert a new job and return its row; None if its key exists."""
        statement = (
            insert_for(self._session, JobRow)
            .values(
                id=new_job_id(),
                spec=spec.to_json(),
                task=spec.task,
                state=JobState.QUEUED,
                attempt=0,
                cancel_requested=False,
                needs_release=spec.needs_release,
                created_at=database_now(),
                not_before_at=database_now(),
                **columns,
            )
            .on_conflict_do_nothing(index_elements=["key"])
            .returning(JobRow)
        )
        return self._session.scalars(statement).one_or_none()

    def _earlier(self, key: str, spec: JobSpec) -> Job:
        job = to_job(self._session.scalars(select(JobRow).where(JobRow.key == key)).one())
        if job.spec.pinned_to(None) != spec.pinned_to(None):  # an alias may have moved between the two requests
            raise ConflictError("key-in-use", key=key, job=job.id)
        return job

    def under(self, key: str) -> Job | None:
        """Return the job with an idempotency key, or None."""
        row = self._session.scalars(select(JobRow).where(JobRow.key == key)).one_or_none()
        return None if row is None else to_job(row)

    def get(self, job_id: str) -> Job:
        """Return a job. Raises NotFoundError."""
        return to_job(self._row(select(JobRow).where(JobRow.id == job_id), job_id))

    def list(
        self,
        *,
        states: Collection[JobState] | None = None,
        task: str | None = None,
        limit: int = 50,
    ) -> Sequence[Job]:
        """Return jobs, newest first."""
        if states is not None and not states:
            return []
        search = JobSearch(tuple(states or ()), task)
        statement = _paged(select(JobRow), search, JobOrder.NEWEST, None).limit(limit)
        return [to_job(row) for row in self._session.scalars(statement)]

    def newest_learning(self, task: str, *, hold: bool = False) -> Job | None:
        """Return the newest job that learned or will learn the task's rows; None if there is none.

        Jobs do not count if they failed, were cancelled, predict files, or rebuild versions without a deleted task.

        Args:
            hold: lock it until the transaction ends.
        """
        counts = JobRow.state.in_([JobState.QUEUED, JobState.RUNNING, JobState.SUCCEEDED])
        rows = JobRow.spec["dataset"].as_string() != ""
        statement = select(JobRow).where(JobRow.task == task, counts, rows).order_by(JobRow.number.desc()).limit(50)
        for row in self._session.scalars(statement.with_for_update() if hold else statement):
            job = to_job(row)
            if not job.spec.is_bulk and not job.spec.replaces:
                return job
        return None

    def building_on(self, job: Job) -> Job | None:
        """Return an open job of the task with rows derived from this job's rows, or None."""
        is_open = JobRow.state.in_([JobState.QUEUED, JobState.RUNNING])
        statement = select(JobRow).where(JobRow.task == job.spec.task, is_open).order_by(JobRow.number)
        for row in self._session.scalars(statement):
            later = to_job(row)
            change = later.spec.change
            if change is not None and change["job"] == job.id:
                return later
        return None

    def rebuilding_before(self, job: Job) -> str | None:
        """Return the oldest open job that rebuilds a version, may tune, and was queued before this one, or None.

        Only jobs of the same queue and base count.
        """
        spec, mine = JobRow.spec, select(JobRow.number).where(JobRow.id == job.id).scalar_subquery()
        rebuilds = spec[("options", "replaces")].as_string().is_not(None)
        same_base = spec[("options", "base_digest")].as_string() == job.spec.options.get("base_digest")
        may_tune = spec["tune_hypernetwork"].as_string() != "never"
        statement = (
            select(JobRow.id)
            .where(IS_OPEN, JobRow.queue == job.queue, JobRow.number < mine, rebuilds, same_base, may_tune)
            .order_by(JobRow.number)
            .limit(1)
        )
        return self._session.scalars(statement).one_or_none()

    def briefs(self, search: JobSearch, order: JobOrder, edge: Edge | None, limit: int) -> builtins.list[Job]:
        """Return matching jobs in the given order, without wide columns.

        The spec only contains the task, and the result only the version.

        Args:
            edge: sort key of the last job of the previous page; None starts at the beginning.
        """
        columns = [column for column in JobRow.__table__.columns if column.name not in ("spec", "result")]
        statement = select(*columns, JobRow.result["version"].as_integer().label("version"))
        return [_brief(row) for row in self._session.execute(_paged(statement, search, order, edge).limit(limit))]

    def edge(self, job_id: str, order: JobOrder) -> Edge:
        """Return the current sort key of a job. Raises NotFoundError."""
        place = self._session.execute(select(*_KEYS[order].columns).where(JobRow.id == job_id)).one_or_none()
        if place is None:
            raise _no_job(job_id)
        return tuple(place)

    def counts(self, search: JobSearch) -> dict[JobState, int]:
        """Return the number of matching jobs by state, without zeros."""
        statement = select(JobRow.state, func.count()).where(*_fitting(search)).group_by(JobRow.state)
        return {JobState(state): count for state, count in self._session.execute(statement)}

    def cancel(self, job_id: str) -> Job:
        """Cancel a queued job, or request it of a running one. Raises NotFoundError, or ConflictError if finished."""
        job = self._locked(job_id)
        require_transition(job_id, job.state, JobState.CANCELLED)
        record(self._session, "job.cancel", job_id, task=job.spec.task)
        if job.state is JobState.QUEUED:
            return self._change(
                job, JobState.CANCELLED, cancel_requested=True, finished_at=database_now(), lease_expires_at=None
            )
        statement = update(JobRow).where(JobRow.id == job_id).values(cancel_requested=True).returning(JobRow)
        row = self._session.scalars(statement).one()
        self._events.append(job_id, job.attempt, "note", "cancel requested")
        return to_job(row)

    def retry(self, job_id: str, max_attempts: int = MAX_ATTEMPTS, *, time_limit_seconds: float | None = None) -> Job:
        """Queue a failed, cancelled or dead job again, with new attempts.

        Args:
            time_limit_seconds: a new time limit; None keeps the old one.

        Raises:
            NotFoundError: the job does not exist.
            ConflictError: it has not ended, it succeeded, or its task was deleted.
            QuotaError: the owner has reached its limit of open jobs.
            InputError: the time limit is invalid.
        """
        require_time_limit(time_limit_seconds)
        job = self._locked(job_id)
        if not job.state.finished:
            raise ConflictError("job-needs-no-retry", job=job_id, state=job.state.value)
        require_transition(job_id, job.state, JobState.QUEUED)
        if not job.spec.dataset and not job.spec.is_bulk:
            raise ConflictError("job-task-deleted", job=job_id)
        record(self._session, "job.retry", job_id, task=job.spec.task)
        ShardRepository(self._session).renew(job_id)
        queued = self._change(
            job,
            JobState.QUEUED,
            cancel_requested=False,
            max_attempts=job.attempt + max_attempts,
            not_before_at=database_now(),
            started_at=None,
            finished_at=None,
            lease_expires_at=None,
            passed_by=None,
            turn=next_turn(job.queue, job.priority, job.owner),
            time_limit_seconds=time_limit_seconds or job.time_limit_seconds,
            error=None,
        )
        QuotaRepository(self._session).admit_job(job.owner)
        return queued

    def _locked(self, job_id: str) -> Job:
        return to_job(self._row(select(JobRow).where(JobRow.id == job_id).with_for_update(), job_id))

    def _row(self, statement: Select[JobRow], job_id: str) -> JobRow:
        row = self._session.scalars(statement).one_or_none()
        if row is None:
            raise _no_job(job_id)
        return row

    def _change(self, present: Job, target: JobState, **values: object) -> Job:
        statement = update(JobRow).where(JobRow.id == present.id).values(state=target, **values).returning(JobRow)
        row = self._session.scalars(statement).one()
        self._events.append(present.id, present.attempt, "state", target)
        return to_job(row)


def to_job(row: JobRow) -> Job:
    """Return the dataclass of a row."""
    return record_of(
        Job,
        row,
        spec=JobSpec.known_part(row.spec),
        state=JobState(row.state),
        stage=Stage.known(row.stage),
    )


def _brief(row: Any) -> Job:
    return record_of(
        Job,
        row,
        spec=JobSpec(task=row.task, dataset=""),
        state=JobState(row.state),
        stage=Stage.known(row.stage),
        result=None if row.version is None else {"version": row.version},
    )


def _no_job(job_id: str) -> NotFoundError:
    return NotFoundError("unknown-job", job=job_id)


def _paged(statement: Select[Any], search: JobSearch, order: JobOrder, edge: Edge | None) -> Select[Any]:
    """Select matching jobs after the edge, in the given order."""
    key = _KEYS[order]
    place = tuple_(*key.columns)
    statement = statement.where(*_fitting(search))
    if edge is not None:
        statement = statement.where(place < edge if key.descending else place > edge)
    return statement.order_by(*(column.desc() if key.descending else column for column in key.columns))


def _fitting(search: JobSearch) -> builtins.list[ColumnElement[bool]]:
    columns = ((JobRow.task, search.task), (JobRow.queue, search.queue), (JobRow.owner, search.owner))
    conditions = [column == value for column, value in columns if value is not None]
    return [*conditions, JobRow.state.in_(search.states)] if search.states else conditions


@dataclass(frozen=True, slots=True)
class _Key:
    columns: tuple[SQLColumnExpression[Any], ...]
    descending: bool


_WAIT: Final[ColumnElement[float]] = literal_column(WAIT_OF_JOB, Double())
_RUN: Final[ColumnElement[float]] = literal_column(RUN_OF_JOB, Double())
_KEYS: Final = {
    JobOrder.NEWEST: _Key((JobRow.number,), descending=True),
    JobOrder.OLDEST: _Key((JobRow.number,), descending=False),
    JobOrder.LONGEST_WAIT: _Key((_WAIT, JobRow.number), descending=True),
    JobOrder.SHORTEST_WAIT: _Key((_WAIT, JobRow.number), descending=False),
    JobOrder.LONGEST_RUN: _Key((_RUN, JobRow.number), descending=True),
    JobOrder.SHORTEST_RUN: _Key((_RUN, JobRow.number), descending=False),
    JobOrder.TASK: _Key((JobRow.task, JobRow.number), descending=False),
    JobOrder.TASK_BACKWARDS: _Key((JobRow.task, JobRow.number), descending=True),
}
