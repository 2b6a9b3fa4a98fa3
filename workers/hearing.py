"""Detect a worker that receives no broker messages: it is free, and jobs of its queues keep waiting.

The row is the job and a bell only a hint, so that a worker that turned deaf, for whatever reason, would stand beside
its work for ever while its heartbeat says that all is well. It looks for itself, rings once more, and says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from onboard.broker.bells import Edge, edge
from onboard.domain.worker import WorkerState
from onboard.jobs.doorbell import Doorbell
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.workers import WorkerRepository
from workers.plan import WorkerPlan

LOADING_SECONDS: Final = 600.0  # as long as Celery waits for a process that loads torch and the base
IN_VAIN_SECONDS: Final = 120.0  # before it is restarted again, and for a process that took another's place to load


@dataclass
class Hearing:
    """Detects that this worker receives no broker messages.

    Args:
        renewals: how often this worker has restarted its consumer.
        messages: the connection to the broker, which counts dropped messages.
        clock: seconds that only grow.
    """

    database: Database
    plan: WorkerPlan
    doorbell: Doorbell
    renewals: int = 0
    messages: Edge = field(default=edge)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._since: float | None = None  # when a job was first seen waiting
        self._in_vain = self.renewals > 0  # until this worker has worked again
        self._replaced_at: float | None = None

    def look(self, busy: bool) -> bool:
        """Look for jobs that wait although this worker is free, and ring for them.

        Args:
            busy: whether the worker's process is handling a message.

        Returns:
            Whether it is unresponsive: free, rung for, and jobs keep waiting.

        Raises:
            UnavailableError: the database or the broker is unavailable, which is a different problem.
        """
        since, self._since = self._since, None
        if busy:
            self._in_vain, self._replaced_at = False, None
            return False
        queues = self._waiting()
        state = self._free_state() if queues else None
        if state is None:
            return False
        for queue in queues:
            self.doorbell.ring(queue)
        self._since = self.clock() if since is None else since
        return self.clock() - self._since >= self._patience(state)

    def process_was_replaced(self) -> None:
        """A new process has replaced the one that handled messages; it has to load first."""
        self._since, self._replaced_at = None, self.clock()

    def facts(self) -> dict[str, Any]:
        """Its public state, in the worker's row."""
        waited = 0.0 if self._since is None else self.clock() - self._since
        return {
            "dropped_messages": self.messages.dropped,
            "renewals": self.renewals,
            "deaf_seconds": round(waited, 1) if waited >= self.plan.deaf_seconds else 0.0,
        }

    def go_on(self, pid: int) -> None:
        """Continue the count from before this process restarted its consumer."""
        with self.database.read() as session:
            rows = [worker for worker in WorkerRepository(session).list() if worker.name == self.plan.name]
        for worker in rows:
            if worker.pid == pid and worker.facts.get("renewals"):
                self.renewals = worker.facts["renewals"]
                self.messages.go_on(worker.facts.get("dropped_messages", 0))
                self._in_vain = True

    def _waiting(self) -> list[str]:
        """The queues with a job that this worker could claim now: a single query, which nearly always finds none."""
        with self.database.glance() as session:
            return ClaimRepository(session).claimable(self.plan.queues, self.plan.name)

    def _free_state(self) -> WorkerState | None:
        """State of this worker if it takes jobs, runs none, and ended none of late; otherwise None."""
        with self.database.read() as session:
            claims = ClaimRepository(session)
            state = WorkerRepository(session).state(self.plan.name)
            if state not in (WorkerState.STARTING, WorkerState.RUNNING) or claims.running(self.plan.name):
                return None
            if claims.ended_since(self.plan.name, read_clock(session) - self.plan.deaf_seconds):
                self._in_vain = False
                return None
            return state

    def _patience(self, state: WorkerState) -> float:
        if state is WorkerState.STARTING:
            return LOADING_SECONDS
        loading = self._replaced_at is not None and self.clock() - self._replaced_at < IN_VAIN_SECONDS
        return IN_VAIN_SECONDS if self._in_vain or loading else self.plan.deaf_seconds
