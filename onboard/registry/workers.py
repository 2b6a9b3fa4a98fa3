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
    """Beating, or spawned a moment ago."""
    beating = and_(
        WorkerRow.state.in_([WorkerState.RUNNING, WorkerState.DRAINING]),
        WorkerRow.heartbeat_at > database_now() - LEASE_SECONDS,
    )
    spawned = and_(WorkerRow.state == WorkerState.STARTING, WorkerRow.heartbeat_at > database_now() - STARTING_SECONDS)
    # from long after now it is of a clock that was set back: a worker that lives says so again within seconds
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
        """Write the worker's row as it starts: STARTING until its process is loaded and hears bells (`ready`).

        Raises:
            ConflictError: a live worker of that name has another process.
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
        present = self._session.scalars(
            select(WorkerRow).where(WorkerRow.name == name, _live(), WorkerRow.pid.is_not(None)).with_for_update()
        ).one_or_none()
        if present is not None and (present.host, present.pid) != (host, pid):
            raise ConflictError("worker-name-taken", worker=name, pid=present.pid, host=present.host)

    def heartbeat(self, name: str, facts: dict[str, Any] | None = None) -> WorkerState:
        """Say that the worker lives. Returns its state, which may have been set to draining. Raises NotFoundError."""
        values: dict[str, Any] = {"heartbeat_at": database_now()}
        if facts is not None:
            values["facts"] = facts
        return self._update(name, **values)

    def ready(self, name: str) -> None:
        """The worker's process is loaded: from now on it hears bells. Nothing else changes one that drains."""
        self._session.execute(
            update(WorkerRow)
            .where(WorkerRow.name == name, WorkerRow.state == WorkerState.STARTING)
            .values(state=WorkerState.RUNNING, heartbeat_at=database_now())
        )

    def state(self, name: str) -> WorkerState:
        """Where the worker stands. Raises NotFoundError."""
        state = self._session.scalars(select(WorkerRow.state).where(WorkerRow.name == name)).one_or_none()
        if state is None:
            raise _unknown(name)
        return WorkerState(state)

    def runs_on(self, name: str, device: str, gpu_uuid: str | None) -> None:
        """The worker's model is loaded: the device that it is on, and that GPU's UUID. Raises NotFoundError."""
        self._update(name, device=device, gpu_uuid=gpu_uuid)

    def device(self, name: str) -> tuple[str, str | None]:
        """The device of the worker, and the UUID of its GPU once the model is loaded. Raises NotFoundError."""
        statement = select(WorkerRow.device, WorkerRow.gpu_uuid).where(WorkerRow.name == name)
        present = self._session.execute(statement).one_or_none()
        if present is None:
            raise _unknown(name)
        return present[0], present[1]

    def drain(self, name: str) -> None:
        """Let the worker finish its job, take no other, and leave. Raises NotFoundError when no such worker lives."""
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
        """The worker was told to stop: it claims nothing more. One that said it has stopped stays so."""
        self._session.execute(
            update(WorkerRow)
            .where(WorkerRow.name == name, WorkerRow.state != WorkerState.STOPPED)
            .values(state=WorkerState.DRAINING)
        )

    def stop(self, name: str) -> None:
        """The worker has left."""
        self._update(name, state=WorkerState.STOPPED)

    def spawned(self, name: str, pid: int) -> None:
        """Who spawned the worker names its process, unless the worker has done so itself by now."""
        self._session.execute(
            update(WorkerRow).where(WorkerRow.name == name, WorkerRow.state == WorkerState.STARTING).values(pid=pid)
        )

    def leave_if_idle(self, name: str, queues: Sequence[str]) -> bool:
        """Mark the worker stopped if its queues have nothing to do.

        Call it in its own write transaction: a submitter then either sees the worker stopped, or its job is seen here.
        """
        if ClaimRepository(self._session).open(queues):
            return False
        self._update(name, state=WorkerState.STOPPED)
        return True

    def list(self, *, include_stopped: bool = False) -> Sequence[WorkerRecord]:
        """Workers by name, with the job that each holds, or a shard of it, by a lease: what ran out is anybody's.

        Args:
            include_stopped: those too that stopped.
        """
        statement = select(WorkerRow, _live(), database_now() - WorkerRow.heartbeat_at).order_by(WorkerRow.name)
        if not include_stopped:
            statement = statement.where(WorkerRow.state != WorkerState.STOPPED)
        rows = self._session.execute(statement).all()
        held = select(JobRow.number, JobRow.worker, JobRow.id).where(
            IS_RUNNING, JobRow.lease_expires_at > database_now()
        )
        jobs = ShardRepository(self._session).holders()  # what it helps with; its own job comes first
        jobs |= {worker: job for _, worker, job in sorted(self._session.execute(held).all()) if worker is not None}
        return [_worker(row, live, age, jobs.get(row.name)) for row, live, age in rows]

    def serving(self, queue: str) -> Sequence[WorkerRecord]:
        """Live workers that take jobs of `queue` (not those that drain)."""
        return [worker for worker in self.list() if worker.takes_jobs and queue in worker.queues]

    def able(self, queue: str, but: Collection[str]) -> Sequence[str]:
        """Names of the workers that serve `queue` and can load what jobs need, but for these."""
        return [worker.name for worker in self.serving(queue) if worker.name not in but]

    def forget(self, older_than_seconds: float) -> None:
        """Delete the rows of workers that have been gone for so long."""
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
    """The queues: pausing, and how many jobs stand in them."""

    def set_paused(self, name: str, paused: bool) -> None:
        """Pause (running jobs go on, queued ones wait) or resume a queue."""
        require_name(name, "name of a queue")
        put_row(self._session, QueueRow, {"name": name}, {"paused": paused, "updated_at": database_now()})
        record(self._session, "queue.pause" if paused else "queue.resume", name)

    def paused(self) -> set[str]:
        """Which queues are paused."""
        return set(self._session.scalars(select(QueueRow.name).where(QueueRow.paused)))

    def known(self) -> set[str]:
        """Queues that somebody meant: the default, and what a worker served lately or an operator paused or resumed."""
        served = self._session.scalars(select(WorkerRow.queues))
        return {"default", *self._session.scalars(select(QueueRow.name)), *(name for names in served for name in names)}

    def list(self) -> Sequence[QueueStatus]:
        """Every queue that has open jobs, was ever paused, or is the default, by name."""
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
        # few run: the index of those that are open need not be written at every heartbeat to tell it too
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
