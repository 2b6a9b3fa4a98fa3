"""Worker processes and queues as rows: heartbeats, draining, pausing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update

from onboard.domain.job import LEASE_SECONDS, JobState
from onboard.domain.names import require_name
from onboard.domain.worker import STARTING_SECONDS, QueueStatus, WorkerRecord, WorkerState
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.audit import record
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import IMPLAUSIBLE_SECONDS, database_now
from onboard.registry.repository import Repository, record_of
from onboard.registry.shards import ShardRepository
from onboard.registry.states import IS_OPEN, IS_RUNNING
from onboard.registry.tables import JobRow, QueueRow, WorkerRow
from onboard.registry.upsert import put_row


def _live() -> ColumnElement[bool]:
    """Condition: has a recent heartbeat, or was started recently."""
    beating = and_(
        WorkerRow.state.in_([WorkerState.RUNNING, WorkerState.DRAINING]),
        WorkerRow.heartbeat_at > database_now() - LEASE_SECONDS,
    )
    spawned = and_(WorkerRow.state == WorkerState.STARTING, WorkerRow.heartbeat_at > database_now() - STARTING_SECONDS)
    # A heartbeat far in the future is from a clock that was set back. A live worker repeats it within seconds.
    return and_(or_(beating, spawned), WorkerRow.heartbeat_at <= database_now() + IMPLAUSIBLE_SECONDS)


class WorkerRepository(Repository):
    """The workers of a deployment."""

    def enter(
        self,
        name: str,
        state: WorkerState,
        *,
        queues: Sequence[str],
        host: str,
        device: str,
        pid: int | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        """Insert the worker's row at its start: STARTING until its process is loaded and receives messages (`ready`).

        Raises:
            ConflictError: a live worker with that name has another process.
        """
        self._require_free(name, host, pid)
        values = {
            "state": state,
            "queues": list(queues),
            "host": host,
            "pid": pid,
            "device": device,
            "gpu_uuid": None,
            "facts": facts or {},
            "started_at": database_now(),
            "heartbeat_at": database_now(),
        }
        put_row(self._session, WorkerRow, {"name": name}, values)

    def _require_free(self, name: str, host: str, pid: int | None) -> None:
        existing = self._session.scalars(
            select(WorkerRow).where(WorkerRow.name == name, _live(), WorkerRow.pid.is_not(None)).with_for_update()
        ).one_or_none()
        if existing is not None and (existing.host, existing.pid) != (host, pid):
            raise ConflictError("worker-name-taken", worker=name, pid=existing.pid, host=existing.host)

    def heartbeat(self, name: str, facts: dict[str, Any] | None = None) -> WorkerState:
        """Record a heartbeat. Returns the worker's state, which may have been set to draining. Raises NotFoundError."""
        values: dict[str, Any] = {"heartbeat_at": database_now()}
        if facts is not None:
            values["facts"] = facts
        return self._update(name, **values)

    def ready(self, name: str) -> None:
        """Mark a starting worker as running, because its process is loaded. Other states do not change."""
        self._session.execute(
            update(WorkerRow)
            .where(WorkerRow.name == name, WorkerRow.state == WorkerState.STARTING)
            .values(state=WorkerState.RUNNING, heartbeat_at=database_now())
        )

    def state(self, name: str) -> WorkerState:
        """Return the worker's state. Raises NotFoundError."""
        state = self._session.scalars(select(WorkerRow.state).where(WorkerRow.name == name)).one_or_none()
        if state is None:
            raise _unknown(name)
        return WorkerState(state)

    def runs_on(self, name: str, device: str, gpu_uuid: str | None) -> None:
        """Record the device of the loaded model and its GPU's UUID. Raises NotFoundError."""
        self._update(name, device=device, gpu_uuid=gpu_uuid)

    def device(self, name: str) -> tuple[str, str | None]:
        """Return the worker's device, and its GPU's UUID once the model is loaded. Raises NotFoundError."""
        statement = select(WorkerRow.device, WorkerRow.gpu_uuid).where(WorkerRow.name == name)
        row = self._session.execute(statement).one_or_none()
        if row is None:
            raise _unknown(name)
        return row[0], row[1]

    def drain(self, name: str) -> None:
        """Let the worker finish its job, take no other, and exit. Raises NotFoundError if it is not live."""
        statement = (
            update(WorkerRow)
            .where(WorkerRow.name == name, _live())
            .values(state=WorkerState.DRAINING)
            .returning(WorkerRow.name)
        )
        if self._session.scalars(statement).one_or_none() is None:
            raise NotFoundError("worker-not-alive", worker=name)
        record(self._session, "worker.drain", name)

    def begin_to_leave(self, name: str) -> None:
        """Mark the worker as draining because it was asked to stop. A stopped worker stays stopped."""
        self._session.execute(
            update(WorkerRow)
            .where(WorkerRow.name == name, WorkerRow.state != WorkerState.STOPPED)
            .values(state=WorkerState.DRAINING)
        )

    def stop(self, name: str) -> None:
        """Mark the worker as stopped."""
        self._update(name, state=WorkerState.STOPPED)

    def spawned(self, name: str, pid: int) -> None:
        """Record the process id of a worker that was just started, unless the worker has already recorded it."""
        self._session.execute(
            update(WorkerRow).where(WorkerRow.name == name, WorkerRow.state == WorkerState.STARTING).values(pid=pid)
        )

    def leave_if_idle(self, name: str, queues: Sequence[str]) -> bool:
        """Mark the worker as stopped if its queues have no open jobs.

        Call this in a separate write transaction: then a submitter sees the stopped worker, or its job is seen here.
        """
        if ClaimRepository(self._session).open(queues):
            return False
        self._update(name, state=WorkerState.STOPPED)
        return True

    def list(self, *, include_stopped: bool = False) -> Sequence[WorkerRecord]:
        """Return workers by name, with the job or shard that each holds by a valid lease.

        Args:
            include_stopped: include workers that stopped.
        """
        statement = select(WorkerRow, _live(), database_now() - WorkerRow.heartbeat_at).order_by(WorkerRow.name)
        if not include_stopped:
            statement = statement.where(WorkerRow.state != WorkerState.STOPPED)
        rows = self._session.execute(statement).all()
        running = select(JobRow.number, JobRow.worker, JobRow.id).where(
            IS_RUNNING, JobRow.lease_expires_at > database_now()
        )
        jobs = ShardRepository(self._session).holders()  # jobs that it helps with; its main job takes precedence
        jobs |= {worker: job for _, worker, job in sorted(self._session.execute(running).all()) if worker is not None}
        return [_worker(row, live, age, jobs.get(row.name)) for row, live, age in rows]

    def serving(self, queue: str) -> Sequence[WorkerRecord]:
        """Return live workers that accept jobs of `queue`, without draining ones."""
        return [worker for worker in self.list() if worker.takes_jobs and queue in worker.queues]

    def able(self, queue: str, but: Collection[str]) -> Sequence[str]:
        """Return the names of workers that serve `queue` and are not in `but`."""
        return [worker.name for worker in self.serving(queue) if worker.name not in but]

    def forget(self, older_than_seconds: float) -> None:
        """Delete the rows of workers without a heartbeat for this long."""
        self._session.execute(
            delete(WorkerRow).where(~_live(), WorkerRow.heartbeat_at <= database_now() - older_than_seconds)
        )

    def _update(self, name: str, **values: Any) -> WorkerState:
        statement = update(WorkerRow).where(WorkerRow.name == name).values(**values).returning(WorkerRow.state)
        state = self._session.scalars(statement).one_or_none()
        if state is None:
            raise _unknown(name)
        return WorkerState(state)


def _unknown(name: str) -> NotFoundError:
    return NotFoundError("unknown-worker", worker=name)


class QueueRepository(Repository):
    """The queues: pausing, and numbers of jobs."""

    def set_paused(self, name: str, paused: bool) -> None:
        """Pause a queue (running jobs continue, queued ones wait) or resume it."""
        require_name(name, "queue name")
        put_row(self._session, QueueRow, {"name": name}, {"paused": paused, "updated_at": database_now()})
        record(self._session, "queue.pause" if paused else "queue.resume", name)

    def paused(self) -> set[str]:
        """Return the paused queues."""
        return set(self._session.scalars(select(QueueRow.name).where(QueueRow.paused)))

    def known(self) -> set[str]:
        """Return the default queue, and those that a worker served or an operator paused or resumed."""
        served = self._session.scalars(select(WorkerRow.queues))
        return {"default", *self._session.scalars(select(QueueRow.name)), *(name for names in served for name in names)}

    def list(self) -> Sequence[QueueStatus]:
        """Return every queue that has open jobs, was ever paused, or is the default, by name."""
        queued, running = JobRow.state == JobState.QUEUED, JobRow.state == JobState.RUNNING
        due = and_(queued, JobRow.not_before_at <= database_now())
        rows = self._session.execute(
            select(
                JobRow.queue,
                func.count().filter(queued),
                func.count().filter(running),
                database_now() - func.min(JobRow.not_before_at).filter(due),
                func.count().filter(and_(queued, ~due)),
                database_now() - func.min(JobRow.started_at).filter(running),
            )
            .where(IS_OPEN)
            .group_by(JobRow.queue)
        )
        # A separate query for the few running jobs, so that heartbeats need not update the index of open jobs.
        expired = select(JobRow.queue).where(IS_RUNNING, JobRow.lease_expires_at <= database_now())
        lost = Counter(self._session.scalars(expired))
        counts: dict[str, Sequence[Any]] = {name: (*figures, lost[name]) for name, *figures in rows}
        paused = dict(self._session.execute(select(QueueRow.name, QueueRow.paused)).all())
        return [
            QueueStatus(name, paused.get(name, False), *counts.get(name, ()))
            for name in sorted({"default", *counts, *paused})
        ]


def _worker(row: WorkerRow, live: bool, heartbeat_age_seconds: float, job: str | None) -> WorkerRecord:
    return record_of(
        WorkerRecord,
        row,
        state=WorkerState(row.state),
        live=bool(live),
        heartbeat_age_seconds=max(heartbeat_age_seconds, 0.0),
        job=job,
    )
