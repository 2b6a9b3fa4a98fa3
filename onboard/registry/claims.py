"""The worker's view of jobs: claim, heartbeat, finish. Every operation after a claim is fenced by its attempt.

A claim is one statement, so that no two workers get the same attempt. Messages may be lost or duplicated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, ScalarSelect, and_, exists, func, or_, select, union_all, update
from sqlalchemy.orm import Session
from sqlalchemy.sql.selectable import TypedReturnsRows

from onboard.domain.job import LEASE_SECONDS, EventKind, Job, JobSpec, JobState, Stage, sources_of
from onboard.domain.release import release_number
from onboard.errors import FencedError, InputError
from onboard.registry.clock import database_now, has_come
from onboard.registry.events import EventRepository
from onboard.registry.jobs import to_job
from onboard.registry.leases import LeaseRepository
from onboard.registry.repository import Repository
from onboard.registry.shards import ShardRepository
from onboard.registry.states import IS_OPEN, IS_RUNNING, not_passed_by, not_paused, stays, understood
from onboard.registry.tables import JobRow
from onboard.registry.turns import CLAIM_ORDER

_RELEASE: Final = release_number()
T = TypeVar("T")


def _expired() -> ColumnElement[bool]:
    return and_(IS_RUNNING, has_come(JobRow.lease_expires_at))


def is_runnable() -> ColumnElement[bool]:
    """Condition: queued and due, or running with an expired lease; with attempts left."""
    waiting = and_(JobRow.state == JobState.QUEUED, has_come(JobRow.not_before_at), not_paused())
    lost = and_(_expired(), JobRow.cancel_requested.is_(False))
    return and_(IS_OPEN, JobRow.attempt < JobRow.max_attempts, or_(waiting, lost))


def _run_by(worker: str) -> tuple[ColumnElement[bool], ...]:
    return JobRow.worker == worker, IS_RUNNING


class ClaimRepository(Repository):
    """The worker's side of the jobs table.

    Args:
        release: release of this worker's code. Jobs that need a newer one are left to newer workers.
    """

    def __init__(self, session: Session, release: int = _RELEASE) -> None:
        super().__init__(session)
        self._release = release
        self._events = EventRepository(session)

    def claim(
        self,
        worker: str,
        queues: Sequence[str],
        *,
        pid: int | None = None,
        lease_seconds: float = LEASE_SECONDS,
        time_limit_seconds: float | None = None,
        only: str | None = None,
    ) -> Job | None:
        """Claim the most urgent runnable job of `queues`; its new attempt is the fencing token. None if there is none.

        A draining or stopped worker gets no job, and no worker gets a job that it passed on. A job with a spec that
        this release cannot read is ended as failed.

        Args:
            time_limit_seconds: for jobs without an individual limit.
            only: id of the only job to claim, even if this worker passed it on.
        """
        while (row := self._take(worker, queues, pid, lease_seconds, time_limit_seconds, only)) is not None:
            self._events.append(row.id, row.attempt, "state", JobState.RUNNING, numbers={"worker": worker})
            try:
                JobSpec.from_json(row.spec)
            except InputError as error:
                self.finish(row.id, row.attempt, JobState.FAILED, error=error.to_json())
                continue
            return to_job(row)
        return None

    def _take(
        self,
        worker: str,
        queues: Sequence[str],
        pid: int | None,
        lease_seconds: float,
        time_limit: float | None,
        only: str | None,
    ) -> JobRow | None:
        if not queues:
            return None
        most_urgent = self._most_urgent(worker, queues, not_passed_by(worker) if only is None else JobRow.id == only)
        statement = (
            update(JobRow)
            .where(JobRow.number == most_urgent)
            .values(
                state=JobState.RUNNING,
                attempt=JobRow.attempt + 1,
                worker=worker,
                worker_pid=pid,
                stage=None,
                started_at=func.coalesce(JobRow.started_at, database_now()),
                claimed_at=database_now(),
                lease_expires_at=database_now() + lease_seconds,
                deadline_at=database_now() + func.coalesce(JobRow.time_limit_seconds, time_limit),
            )
            .returning(JobRow)
        )
        return self._session.scalars(statement).one_or_none()

    def _most_urgent(self, worker: str, queues: Sequence[str], eligible: ColumnElement[bool]) -> ScalarSelect[int]:
        """Select the first job of each queue by the index, then the most urgent of these."""
        firsts = [
            select(JobRow.number, JobRow.priority, JobRow.turn)
            .where(JobRow.queue == queue, is_runnable(), understood(self._release), stays(worker), eligible)
            .order_by(*CLAIM_ORDER)
            .limit(1)
            .with_for_update(skip_locked=True)
            .subquery()
            for queue in sorted(set(queues))
        ]
        first = union_all(*map(select, firsts)).subquery()
        return (
            select(first.c.number)
            .order_by(first.c.priority.desc(), first.c.turn, first.c.number)
            .limit(1)
            .scalar_subquery()
        )

    def heartbeat(self, job_id: str, attempt: int, lease_seconds: float = LEASE_SECONDS) -> bool:
        """Extend the lease of a job and the leases that it holds. Returns whether cancellation was requested.

        Raises:
            FencedError: another attempt owns the job, or it has ended.
        """
        job = self._owned(job_id, attempt, lease_expires_at=database_now() + lease_seconds)
        LeaseRepository(self._session).extend_all(job_id, lease_seconds)
        if job.spec.is_bulk:
            ShardRepository(self._session).extend_all(job_id, job.worker, lease_seconds)
        return job.cancel_requested

    def hold(self, job_id: str, attempt: int) -> Job:
        """Lock the job until the transaction ends and return it. Raises FencedError."""
        statement = select(JobRow).where(*owned_by(job_id, attempt)).with_for_update(key_share=True)
        return to_job(self._fenced(statement, job_id, attempt))

    def cancel_requested(self, job_id: str, attempt: int) -> bool:
        """Return whether cancellation was requested, without writing. Raises FencedError."""
        statement = select(JobRow.cancel_requested).where(*owned_by(job_id, attempt))
        return self._fenced(statement, job_id, attempt)

    def append(
        self,
        job_id: str,
        attempt: int,
        kind: EventKind,
        message: str,
        *,
        stage: Stage | None = None,
        seconds: float | None = None,
        numbers: dict[str, Any] | None = None,
    ) -> bool:
        """Append an event; `stage_started` also updates the job's stage. Returns whether cancellation was requested.

        Raises:
            FencedError: another attempt owns the job, or it has ended.
        """
        if kind == "stage_started" and stage is not None:
            job = self._owned(job_id, attempt, stage=stage.value)
        else:
            job = self.hold(job_id, attempt)
        self._events.append(job_id, attempt, kind, message, stage=stage, seconds=seconds, numbers=numbers)
        return job.cancel_requested

    def finish(
        self,
        job_id: str,
        attempt: int,
        state: JobState,
        *,
        result: dict[str, Any] | None = None,
        error: dict[str, Any] | None = None,
    ) -> Job:
        """End the job as succeeded, failed, cancelled or dead. Raises FencedError."""
        assert state.finished
        ended = {"state": state, "result": result, "error": error, "finished_at": database_now()}
        job = self._owned(job_id, attempt, lease_expires_at=None, **ended)
        LeaseRepository(self._session).give_back_all(job_id)
        self._events.append(job_id, attempt, "state", state, numbers={"error": error} if error else None)
        return job

    def release(self, job_id: str, attempt: int) -> Job:
        """Return the job to its queue because the worker is leaving. The attempt does not count."""
        return self._requeue(job_id, attempt, {"reason": "the worker exited"}, max_attempts=JobRow.max_attempts + 1)

    def put_off(self, job_id: str, attempt: int, error: dict[str, Any], delay_seconds: float) -> Job:
        """Queue the job again after `delay_seconds`, because a resource is in use. The attempt does not count."""
        facts = {"reason": error["message"], "delay_seconds": delay_seconds}
        return self._requeue(job_id, attempt, facts, error=error, max_attempts=JobRow.max_attempts + 1)

    def pass_on(self, job_id: str, attempt: int, worker: str, error: dict[str, Any]) -> Job:
        """Queue the job again for other workers, because this one cannot run it. The attempt does not count."""
        passed_by = func.coalesce(JobRow.passed_by, "\n").concat(f"{worker}\n")
        facts = {"reason": error["message"], "passed_by": worker}
        return self._requeue(
            job_id, attempt, facts, error=error, max_attempts=JobRow.max_attempts + 1, passed_by=passed_by
        )

    def retry_later(self, job_id: str, attempt: int, error: dict[str, Any], delay_seconds: float) -> Job:
        """Queue the job again after a retryable error, or end it as dead if its attempts are used up.

        Raises:
            FencedError: another attempt owns the job, or it has ended.
        """
        if self.hold(job_id, attempt).attempts_used_up:
            return self.finish(job_id, attempt, JobState.DEAD, error=error)
        return self._requeue(job_id, attempt, {"error": error, "delay_seconds": delay_seconds}, error=error)

    def _requeue(self, job_id: str, attempt: int, facts: dict[str, Any], **values: Any) -> Job:
        """Return the job to its queue. `facts` go into the event; `delay_seconds` in them postpones the next claim."""
        due = database_now() + facts.get("delay_seconds", 0.0)
        nobody = {"lease_expires_at": None, "worker": None, "worker_pid": None}
        job = self._owned(job_id, attempt, state=JobState.QUEUED, not_before_at=due, **nobody, **values)
        LeaseRepository(self._session).give_back_all(job_id)
        self._events.append(job_id, attempt, "state", JobState.QUEUED, numbers=facts)
        return job

    def expire(self, worker: str, pid: int) -> Sequence[Job]:
        """Expire the leases of jobs that process `pid` of `worker` was running, because it is known to be dead."""
        statement = (
            update(JobRow)
            .where(*_run_by(worker), JobRow.worker_pid == pid, JobRow.lease_expires_at > database_now())
            .values(lease_expires_at=database_now())
            .returning(JobRow)
        )
        jobs = [to_job(row) for row in self._session.scalars(statement)]
        for job in jobs:
            LeaseRepository(self._session).give_back_all(job.id)
            self._events.append(job.id, job.attempt, "note", "the worker's process died", numbers={"pid": pid})
        return jobs

    def end_abandoned(self) -> Sequence[Job]:
        """End jobs with an expired lease that cannot be claimed again: cancelled if requested, otherwise dead."""
        ended = []
        for state, condition, error in (
            (JobState.CANCELLED, JobRow.cancel_requested.is_(True), None),
            (JobState.DEAD, JobRow.attempt >= JobRow.max_attempts, _LOST),
        ):
            statement = (
                update(JobRow)
                .where(JobRow.state.in_(sources_of(state)), _expired(), condition)
                .values(state=state, error=error, finished_at=database_now(), lease_expires_at=None)
                .returning(JobRow)
            )
            ended += [to_job(row) for row in self._session.scalars(statement)]
        for job in ended:
            self._events.append(job.id, job.attempt, "state", job.state)
        return ended

    def overdue(self, worker: str | None = None) -> Sequence[Job]:
        """Return running jobs that exceeded their time limit, of one worker or all."""
        whose = (IS_RUNNING,) if worker is None else _run_by(worker)
        statement = select(JobRow).where(*whose, JobRow.deadline_at <= database_now())
        return [to_job(row) for row in self._session.scalars(statement)]

    def end_overdue(self, worker: str | None = None) -> Sequence[Job]:
        """End overdue jobs as failed, because a retry would take as long."""
        ended = []
        for job in self.overdue(worker):
            with contextlib.suppress(FencedError):  # it has just ended
                ended.append(self.finish(job.id, job.attempt, JobState.FAILED, error=_overdue(job)))
        return ended

    def runnable(self) -> dict[str, int]:
        """Return the number of claimable jobs by queue, including those that need newer workers."""
        statement = select(JobRow.queue, func.count()).where(is_runnable()).group_by(JobRow.queue)
        return dict(self._session.execute(statement).all())

    def claimable(self, queues: Sequence[str], worker: str) -> list[str]:
        """Return the queues with a job that `worker` could claim now, on this release, and has not passed on."""
        statement = select(JobRow.queue).where(
            JobRow.queue.in_(list(queues)), is_runnable(), understood(self._release), not_passed_by(worker)
        )
        return sorted(self._session.scalars(statement.distinct()))

    def ended_since(self, worker: str, since: float) -> bool:
        """Return whether a job of `worker` ended since a time in epoch seconds (a number, so that PostgreSQL uses its
        index).
        """
        ended = exists().where(JobRow.finished_at > since, JobRow.worker == worker)
        return self._session.scalars(select(ended)).one()

    def too_new(self, queues: Sequence[str]) -> int | None:
        """Return the highest release that runnable jobs of `queues` need, if this worker's is lower; otherwise None."""
        statement = select(func.max(JobRow.needs_release)).where(
            JobRow.queue.in_(list(queues)), is_runnable(), ~understood(self._release)
        )
        return self._session.scalars(statement).one()

    def open(self, queues: Sequence[str]) -> bool:
        """Return whether a job of `queues` is running, or waiting in an active queue for this release."""
        waiting = and_(JobRow.state == JobState.QUEUED, not_paused(), understood(self._release))
        open_job = exists().where(JobRow.queue.in_(list(queues)), IS_OPEN, or_(waiting, IS_RUNNING))
        return self._session.scalars(select(open_job)).one()

    def running(self, worker: str) -> Sequence[Job]:
        """Return all jobs that `worker` is recorded to run."""
        return [to_job(row) for row in self._session.scalars(select(JobRow).where(*_run_by(worker)))]

    def holding(self, worker: str) -> Sequence[Job]:
        """Return jobs that `worker` runs with a valid lease and within their time limit."""
        in_time = or_(JobRow.deadline_at.is_(None), JobRow.deadline_at > database_now())
        statement = select(JobRow).where(*_run_by(worker), JobRow.lease_expires_at > database_now(), in_time)
        return [to_job(row) for row in self._session.scalars(statement)]

    def _owned(self, job_id: str, attempt: int, /, **values: Any) -> Job:
        """Update the job if `attempt` still owns it; otherwise raise FencedError. Methods above use it or `hold`."""
        statement = update(JobRow).where(*owned_by(job_id, attempt)).values(**values).returning(JobRow)
        return to_job(self._fenced(statement, job_id, attempt))

    def _fenced(self, statement: TypedReturnsRows[T], job_id: str, attempt: int) -> T:
        """Return the value that a statement with the conditions of `owned_by` finds. Raises FencedError: none."""
        value = self._session.scalars(statement).one_or_none()
        if value is None:
            raise FencedError("attempt-fenced", job=job_id, attempt=attempt)
        return value


def owned_by(job_id: str, attempt: int) -> tuple[ColumnElement[bool], ...]:
    """The fence: conditions that the job runs, and that this attempt owns it."""
    return JobRow.id == job_id, JobRow.attempt == attempt, JobRow.state == JobState.RUNNING


def _overdue(job: Job) -> dict[str, Any]:
    assert job.deadline_at is not None
    limit = job.deadline_at - (job.claimed_at or job.deadline_at)
    return {
        "code": "time_limit",
        "message": f"The job took longer than {limit:.6g} s, its time limit.",
        "remedy": f"onboard jobs retry {job.id} --time-limit SECONDS; it continues after its last finished stage",
        "time_limit_seconds": round(limit, 3),
    }


_LOST = {
    "code": "dead",
    "message": "The worker was lost in every attempt at this job.",
    "remedy": "Find the cause in the worker's log (out of memory?), then: onboard jobs retry JOB",
}
