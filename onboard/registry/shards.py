"""Shards of jobs that answer files: claim, extend, finish. Each is fenced by its own attempt, whoever runs the job.

The job is one row that one worker runs, as every job. Its shards are claimed by that worker and by any other that has
no job to run: what a worker holds is given anew when its lease runs out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import CursorResult, Select, and_, exists, func, insert, select, update
from sqlalchemy.sql.elements import ColumnElement

from onboard.domain.bulk import MAX_SHARD_ATTEMPTS, RATE_SECONDS, ShardClaim, ShardsStanding
from onboard.domain.job import BULK, LEASE_SECONDS, MAX_ATTEMPTS, JobState
from onboard.domain.release import release_number
from onboard.errors import CancelledError, FencedError
from onboard.registry.clock import database_now, has_come, read_clock
from onboard.registry.repository import Repository
from onboard.registry.states import IS_OPEN, IS_RUNNING, not_paused, stays, understood
from onboard.registry.tables import JobRow, JobShardRow
from onboard.registry.turns import CLAIM_ORDER

_INSERTED_AT_ONCE: Final = 2_000
_RELEASE: Final = release_number()
_OUTPUT: Final = JobRow.spec[("options", BULK, "output")].as_string()


def _free() -> ColumnElement[bool]:
    """Not written, held by nobody, and nothing is wrong with it."""
    row = JobShardRow
    return and_(row.finished_at.is_(None), ~_held(), row.attempt < row.max_attempts, row.error.is_(None))


def _held() -> ColumnElement[bool]:
    return and_(JobShardRow.lease_expires_at.is_not(None), ~has_come(JobShardRow.lease_expires_at))


class ShardRepository(Repository):
    """The shards of the jobs of a deployment."""

    def add(self, job_id: str, rows: Sequence[int], done: Collection[int]) -> None:
        """Write a job's shards, unless an earlier attempt has.

        Args:
            rows: of each, in their order.
            done: numbers of those whose answers are there already.
        """
        count = self._session.scalars(select(func.count()).where(JobShardRow.job == job_id)).one()
        at = read_clock(self._session)
        new = [
            {
                "job": job_id, "number": number, "rows": rows[number], "attempt": 0,
                "max_attempts": MAX_SHARD_ATTEMPTS, "finished_at": at if number in done else None,
            }
            for number in range(count, len(rows))
        ]  # fmt: skip
        for first in range(0, len(new), _INSERTED_AT_ONCE):
            self._session.execute(insert(JobShardRow), new[first : first + _INSERTED_AT_ONCE])

    def written(self, job_id: str) -> set[int]:
        """The numbers of the shards whose answers are there."""
        done = and_(JobShardRow.job == job_id, JobShardRow.finished_at.is_not(None))
        return set(self._session.scalars(select(JobShardRow.number).where(done)))

    def forget(self, job_id: str, numbers: Collection[int]) -> None:
        """The answers of these are gone: they have to be written again."""
        for number in numbers:
            gone = and_(JobShardRow.job == job_id, JobShardRow.number == number)
            self._session.execute(update(JobShardRow).where(gone).values(finished_at=None))

    def claim(
        self, job_id: str, worker: str, pid: int | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> ShardClaim | None:
        """The job's next free shard; None when there is none, or the worker leaves."""
        return self._take(_first_free(JobShardRow.job == job_id, stays(worker)), worker, pid, lease_seconds)

    def claim_any(
        self, worker: str, queues: Sequence[str], pid: int | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> ShardClaim | None:
        """The next free shard of the most urgent job that runs in `queues`, for a worker that has no job to run."""
        helped = and_(JobRow.queue.in_(list(queues)), not_paused(), understood(_RELEASE), stays(worker))
        return self._take(_first_free(helped), worker, pid, lease_seconds)

    def _take(self, first: Select[str, int], worker: str, pid: int | None, lease_seconds: float) -> ShardClaim | None:
        row, free = JobShardRow, self._session.execute(first).one_or_none()  # locked: nobody else takes it meanwhile
        if free is None:
            return None
        claimed = (
            update(row)
            .where(row.job == free.job, row.number == free.number)
            .values(
                attempt=row.attempt + 1, worker=worker, worker_pid=pid,
                lease_expires_at=database_now() + lease_seconds,
            )
            .returning(row.job, row.number, row.attempt)
        )  # fmt: skip
        return ShardClaim(*self._session.execute(claimed).one())

    def extend(self, claim: ShardClaim, lease_seconds: float = LEASE_SECONDS) -> bool:
        """Extend its lease. Returns whether the job is to stop. Raises FencedError: the shard is no longer ours."""
        self._owned(claim, lease_expires_at=database_now() + lease_seconds)
        return self.stops(claim)

    def stops(self, claim: ShardClaim) -> bool:
        """Whether the job has ended or is to be cancelled; reads only. Raises FencedError."""
        row = JobShardRow
        statement = (
            select(JobRow.state, JobRow.cancel_requested)
            .join(row, row.job == JobRow.id)
            .where(row.job == claim.job, row.number == claim.number, row.attempt == claim.attempt, _unwritten())
        )
        standing = self._session.execute(statement).one_or_none()
        if standing is None:
            raise _fenced(claim)
        state, cancel_requested = standing
        return bool(cancel_requested or JobState(state).finished)

    def hold(self, claim: ShardClaim) -> None:
        """Keep it from other attempts until the transaction ends, to publish its answers meanwhile.

        Raises:
            FencedError: it is no longer ours.
            CancelledError: the job has ended, or is to be cancelled.
        """
        self._owned(claim, attempt=claim.attempt)
        if self.stops(claim):
            raise CancelledError("bulk-job-stopped", job=claim.job)

    def finish(self, claim: ShardClaim) -> None:
        """Its answers are there: what its job has tried in vain before counts no more. Raises FencedError."""
        self._owned(claim, finished_at=database_now(), lease_expires_at=None)
        tried = JobRow.max_attempts < JobRow.attempt + MAX_ATTEMPTS - 1
        anew = update(JobRow).where(JobRow.id == claim.job, IS_OPEN, tried)
        self._session.execute(anew.values(max_attempts=JobRow.attempt + MAX_ATTEMPTS - 1))

    def give_back(self, claim: ShardClaim) -> None:
        """Somebody else may have it at once; that attempt does not count. Nothing happens when it is not ours."""
        self._session.execute(_own(claim).values(lease_expires_at=None, max_attempts=JobShardRow.max_attempts + 1))

    def fail(self, claim: ShardClaim, error: dict[str, Any]) -> None:
        """It cannot be answered: whoever runs the job ends it with that. Raises FencedError."""
        self._owned(claim, lease_expires_at=None, error=error)

    def renew(self, job_id: str) -> None:
        """Its job is tried again: so are the shards that could not be answered."""
        mine = update(JobShardRow).where(JobShardRow.job == job_id, JobShardRow.finished_at.is_(None))
        self._session.execute(mine.values(max_attempts=JobShardRow.attempt + MAX_SHARD_ATTEMPTS, error=None))

    def extend_all(self, job_id: str, worker: str | None, lease_seconds: float) -> None:
        """Extend what the worker that runs the job holds of it."""
        mine = update(JobShardRow).where(JobShardRow.job == job_id, JobShardRow.worker == worker, _held())
        self._session.execute(mine.values(lease_expires_at=database_now() + lease_seconds))

    def expire(self, worker: str, pid: int) -> None:
        """What the process `pid` of `worker` held is anybody's, for it is known to be dead."""
        held = update(JobShardRow).where(JobShardRow.worker == worker, JobShardRow.worker_pid == pid, _held())
        self._session.execute(held.values(lease_expires_at=None))

    def give_back_all(self, worker: str) -> None:
        """What a worker that leaves held is anybody's; those attempts do not count."""
        held = update(JobShardRow).where(JobShardRow.worker == worker, _held())
        self._session.execute(held.values(lease_expires_at=None, max_attempts=JobShardRow.max_attempts + 1))

    def held(self, worker: str) -> list[int]:
        """The processes of `worker` that hold a shard, one for each shard."""
        mine = select(JobShardRow.worker_pid).where(JobShardRow.worker == worker, _held())
        return [pid for pid in self._session.scalars(mine) if pid is not None]

    def helps(self, worker: str) -> bool:
        """Whether `worker` holds a shard of a job that goes on."""
        mine = exists().where(JobShardRow.worker == worker, _held(), JobShardRow.job == JobRow.id)
        goes_on = select(JobRow.id).where(IS_OPEN, JobRow.cancel_requested.is_(False), mine).limit(1)
        return self._session.scalars(goes_on).one_or_none() is not None

    def holders(self) -> dict[str, str]:
        """The job of the shard that each worker holds."""
        held = self._session.execute(select(JobShardRow.worker, JobShardRow.job).where(_held())).all()
        return {worker: job for worker, job in held if worker is not None}

    def queues(self) -> set[str]:
        """Queues in which a running job has shards that somebody could help with."""
        free = exists().where(JobShardRow.job == JobRow.id, _free())
        statement = select(JobRow.queue).where(IS_RUNNING, JobRow.cancel_requested.is_(False), free).distinct()
        return set(self._session.scalars(statement))

    def standing(self, job_id: str, since: float | None, now: float) -> ShardsStanding | None:
        """How far a job is; None where it has no shards.

        Args:
            since: when its attempt began, epoch seconds.
            now: the database's clock.
        """
        row, window = JobShardRow, min(RATE_SECONDS, max(now - (since or now), 0.0))
        done = row.finished_at.is_not(None)
        statement = select(
            func.count(),
            func.coalesce(func.sum(row.rows), 0),
            func.count().filter(done),
            func.coalesce(func.sum(row.rows).filter(done), 0),
            func.coalesce(func.sum(row.rows).filter(row.finished_at > now - window, row.attempt > 0), 0),
            func.count(row.worker.distinct()).filter(_held()),
        ).where(row.job == job_id)
        shards, rows, shards_done, rows_done, recent, workers = self._session.execute(statement).one()
        if not shards:
            return None
        stuck = and_(row.job == job_id, row.finished_at.is_(None), row.attempt >= row.max_attempts, ~_held())
        lost = self._session.scalars(select(func.min(row.number)).where(stuck)).one()
        wrong = select(row.error).where(row.job == job_id, row.finished_at.is_(None), row.error.is_not(None)).limit(1)
        error = self._session.scalars(wrong).one_or_none()
        return ShardsStanding(rows, shards, rows_done, shards_done, recent, window, workers, lost, error)

    def job_writing_to(self, output: str) -> str | None:
        """The open job that writes its answers there, if there is one."""
        statement = select(JobRow.id).where(IS_OPEN, output == _OUTPUT).order_by(JobRow.number).limit(1)
        return self._session.scalars(statement).one_or_none()

    def leaves(self, worker: str) -> bool:
        """Whether the worker takes nothing more."""
        return not self._session.scalars(select(stays(worker))).one()

    def _owned(self, claim: ShardClaim, /, **values: Any) -> None:
        """Update the shard if that attempt still owns it; the fence of everything above."""
        result = self._session.execute(_own(claim).values(**values))
        assert isinstance(result, CursorResult)
        if result.rowcount != 1:
            raise _fenced(claim)


def _own(claim: ShardClaim) -> Any:
    row = JobShardRow
    return update(row).where(
        row.job == claim.job, row.number == claim.number, row.attempt == claim.attempt, _unwritten()
    )


def _unwritten() -> ColumnElement[bool]:
    """Held by the attempt that claimed it last: none has given it back or lost it."""
    return and_(JobShardRow.finished_at.is_(None), JobShardRow.lease_expires_at.is_not(None))


def _first_free(*conditions: ColumnElement[bool]) -> Select[str, int]:
    """Job and number of the first free shard of the most urgent running job that meets the conditions."""
    return (
        select(JobShardRow.job, JobShardRow.number)
        .join(JobRow, JobRow.id == JobShardRow.job)
        .where(IS_RUNNING, JobRow.cancel_requested.is_(False), _free(), *conditions)
        .order_by(*CLAIM_ORDER, JobShardRow.number)
        .limit(1)
        .with_for_update(skip_locked=True, of=JobShardRow)
    )


def _fenced(claim: ShardClaim) -> FencedError:
    return FencedError("shard-fenced", job=claim.job, shard=claim.number, attempt=claim.attempt)  # fmt: skip
