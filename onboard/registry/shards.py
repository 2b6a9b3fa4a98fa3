"""Shards of jobs that predict files: claim, extend, finish. Each shard is fenced by its attempt.

The job is one row that one worker runs. That worker claims shards, and so do idle workers. A shard can be claimed again
when its lease expires.
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
    """Condition: not finished, not claimed, and without an error."""
    row = JobShardRow
    return and_(row.finished_at.is_(None), ~_held(), row.attempt < row.max_attempts, row.error.is_(None))


def _held() -> ColumnElement[bool]:
    return and_(JobShardRow.lease_expires_at.is_not(None), ~has_come(JobShardRow.lease_expires_at))


class ShardRepository(Repository):
    """The shards of the jobs of a deployment."""

    def add(self, job_id: str, rows: Sequence[int], done: Collection[int]) -> None:
        """Insert a job's shards, unless an earlier attempt did.

        Args:
            rows: number of rows of each shard, in order.
            done: numbers of shards that already have answers.
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
        """Return the numbers of the finished shards."""
        done = and_(JobShardRow.job == job_id, JobShardRow.finished_at.is_not(None))
        return set(self._session.scalars(select(JobShardRow.number).where(done)))

    def forget(self, job_id: str, numbers: Collection[int]) -> None:
        """Mark shards as unfinished, because their answers are gone."""
        for number in numbers:
            gone = and_(JobShardRow.job == job_id, JobShardRow.number == number)
            self._session.execute(update(JobShardRow).where(gone).values(finished_at=None))

    def claim(
        self, job_id: str, worker: str, pid: int | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> ShardClaim | None:
        """Claim the job's next free shard; None if there is none, or the worker is leaving."""
        return self._take(_first_free(JobShardRow.job == job_id, stays(worker)), worker, pid, lease_seconds)

    def claim_any(
        self, worker: str, queues: Sequence[str], pid: int | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> ShardClaim | None:
        """Claim the next free shard of the most urgent running job in `queues`, for an idle worker."""
        helped = and_(JobRow.queue.in_(list(queues)), not_paused(), understood(_RELEASE), stays(worker))
        return self._take(_first_free(helped), worker, pid, lease_seconds)

    def _take(self, first: Select[str, int], worker: str, pid: int | None, lease_seconds: float) -> ShardClaim | None:
        row, free = JobShardRow, self._session.execute(first).one_or_none()  # locked against other claims
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
        """Extend the lease. Returns whether the job is to stop. Raises FencedError."""
        self._owned(claim, lease_expires_at=database_now() + lease_seconds)
        return self.stops(claim)

    def stops(self, claim: ShardClaim) -> bool:
        """Return whether the job has ended or is to be cancelled, without writing. Raises FencedError."""
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
        """Lock the shard until the transaction ends, to publish its answers.

        Raises:
            FencedError: another attempt owns the shard.
            CancelledError: the job has ended, or is to be cancelled.
        """
        self._owned(claim, attempt=claim.attempt)
        if self.stops(claim):
            raise CancelledError("bulk-job-stopped", job=claim.job)

    def finish(self, claim: ShardClaim) -> None:
        """Mark the shard as finished and reset the job's failed attempts. Raises FencedError."""
        self._owned(claim, finished_at=database_now(), lease_expires_at=None)
        tried = JobRow.max_attempts < JobRow.attempt + MAX_ATTEMPTS - 1
        anew = update(JobRow).where(JobRow.id == claim.job, IS_OPEN, tried)
        self._session.execute(anew.values(max_attempts=JobRow.attempt + MAX_ATTEMPTS - 1))

    def give_back(self, claim: ShardClaim) -> None:
        """Release the shard. The attempt does not count. Has no effect if another attempt owns it."""
        self._session.execute(_own(claim).values(lease_expires_at=None, max_attempts=JobShardRow.max_attempts + 1))

    def fail(self, claim: ShardClaim, error: dict[str, Any]) -> None:
        """Record an error, with which the job's worker ends the job. Raises FencedError."""
        self._owned(claim, lease_expires_at=None, error=error)

    def renew(self, job_id: str) -> None:
        """Reset failed shards, because the job is retried."""
        mine = update(JobShardRow).where(JobShardRow.job == job_id, JobShardRow.finished_at.is_(None))
        self._session.execute(mine.values(max_attempts=JobShardRow.attempt + MAX_SHARD_ATTEMPTS, error=None))

    def extend_all(self, job_id: str, worker: str | None, lease_seconds: float) -> None:
        """Extend the leases of the shards that the job's worker holds."""
        mine = update(JobShardRow).where(JobShardRow.job == job_id, JobShardRow.worker == worker, _held())
        self._session.execute(mine.values(lease_expires_at=database_now() + lease_seconds))

    def expire(self, worker: str, pid: int) -> None:
        """Release the shards of process `pid` of `worker`, because it is known to be dead."""
        statement = update(JobShardRow).where(JobShardRow.worker == worker, JobShardRow.worker_pid == pid, _held())
        self._session.execute(statement.values(lease_expires_at=None))

    def give_back_all(self, worker: str) -> None:
        """Release the shards of a worker that is leaving. The attempts do not count."""
        statement = update(JobShardRow).where(JobShardRow.worker == worker, _held())
        self._session.execute(statement.values(lease_expires_at=None, max_attempts=JobShardRow.max_attempts + 1))

    def held(self, worker: str) -> list[int]:
        """Return the process ids of `worker` that hold a shard, one per shard."""
        mine = select(JobShardRow.worker_pid).where(JobShardRow.worker == worker, _held())
        return [pid for pid in self._session.scalars(mine) if pid is not None]

    def helps(self, worker: str) -> bool:
        """Return whether `worker` holds a shard of a running job."""
        mine = exists().where(JobShardRow.worker == worker, _held(), JobShardRow.job == JobRow.id)
        goes_on = select(JobRow.id).where(IS_OPEN, JobRow.cancel_requested.is_(False), mine).limit(1)
        return self._session.scalars(goes_on).one_or_none() is not None

    def holders(self) -> dict[str, str]:
        """Return the job of the shard that each worker holds."""
        rows = self._session.execute(select(JobShardRow.worker, JobShardRow.job).where(_held())).all()
        return {worker: job for worker, job in rows if worker is not None}

    def queues(self) -> set[str]:
        """Return queues in which a running job has free shards."""
        free = exists().where(JobShardRow.job == JobRow.id, _free())
        statement = select(JobRow.queue).where(IS_RUNNING, JobRow.cancel_requested.is_(False), free).distinct()
        return set(self._session.scalars(statement))

    def standing(self, job_id: str, since: float | None, now: float) -> ShardsStanding | None:
        """Return the progress of a job; None if it has no shards.

        Args:
            since: when its attempt started, epoch seconds.
            now: the database's time.
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
        """Return the open job that writes its answers to this URL, or None."""
        statement = select(JobRow.id).where(IS_OPEN, output == _OUTPUT).order_by(JobRow.number).limit(1)
        return self._session.scalars(statement).one_or_none()

    def leaves(self, worker: str) -> bool:
        """Return whether the worker is draining or stopped."""
        return not self._session.scalars(select(stays(worker))).one()

    def _owned(self, claim: ShardClaim, /, **values: Any) -> None:
        """Update the shard if the attempt still owns it; otherwise raise FencedError. All methods above use it."""
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
    """Condition: claimed and neither finished nor released."""
    return and_(JobShardRow.finished_at.is_(None), JobShardRow.lease_expires_at.is_not(None))


def _first_free(*conditions: ColumnElement[bool]) -> Select[str, int]:
    """Select the first free shard of the most urgent running job that meets the conditions."""
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
