"""Whether this worker still hears its bell: jobs that wait beside a free worker mean that it does not.

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
IN_VAIN_SECONDS: Final = 120.0  # before it is begun anew again, and for a process that took another's place to load


@dataclass
class Hearing:
    """What one worker knows of its own hearing.

    Args:
        renewals: how often this worker has begun anew because it had turned deaf.
        messages: the edge to the broker, which counts what was dropped there.
        clock: seconds that only grow.
    """

    database: Database
    plan: WorkerPlan
    doorbell: Doorbell
    renewals: int = 0
    messages: Edge = field(default=edge)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._since: float | None = None  # when a job was first seen to wait beside this worker
        self._in_vain = self.renewals > 0  # until it has worked again
        self._replaced_at: float | None = None

    def look(self, busy: bool) -> bool:
        """Look for jobs that wait beside this worker, and ring for them.

        Args:
            busy: whether the worker's process is answering a bell.

        Returns:
            Whether it is deaf: free, rung for, and jobs go on waiting.

        Raises:
            UnavailableError: database or broker are away, which is no deafness.
        """
        since, self._since = self._since, None
        if busy:
            self._in_vain, self._replaced_at = False, None
            return False
        state, queues = self._waiting()
        if not queues:
            return False
        for queue in queues:
            self.doorbell.ring(queue)
        self._since = self.clock() if since is None else since
        return self.clock() - self._since >= self._patience(state)

    def process_was_replaced(self) -> None:
        """Another process has taken the place of the one that answered bells: it loads first."""
        self._since, self._replaced_at = None, self.clock()

    def facts(self) -> dict[str, Any]:
        """What others are told of it, in the worker's row."""
        waited = 0.0 if self._since is None else self.clock() - self._since
        return {
            "dropped_messages": self.messages.dropped,
            "renewals": self.renewals,
            "deaf_seconds": round(waited, 1) if waited >= self.plan.deaf_seconds else 0.0,
        }

    def go_on(self, pid: int) -> None:
        """Count on where this very process left off before it began anew."""
        with self.database.read() as session:
            rows = [worker for worker in WorkerRepository(session).list() if worker.name == self.plan.name]
        for worker in rows:
            if worker.pid == pid and worker.facts.get("renewals"):
                self.renewals = worker.facts["renewals"]
                self.messages.go_on(worker.facts.get("dropped_messages", 0))
                self._in_vain = True

    def _waiting(self) -> tuple[WorkerState, list[str]]:
        """State of this worker, and the queues in which it could claim a job now; none while it works."""
        with self.database.read() as session:
            claims = ClaimRepository(session)
            state = WorkerRepository(session).state(self.plan.name)
            if state not in (WorkerState.STARTING, WorkerState.RUNNING) or claims.running(self.plan.name):
                return state, []
            queues = claims.claimable(self.plan.queues, self.plan.name)
            if queues and claims.ended_since(self.plan.name, read_clock(session) - self.plan.deaf_seconds):
                self._in_vain = False
                return state, []
            return state, queues

    def _patience(self, state: WorkerState) -> float:
        if state is WorkerState.STARTING:
            return LOADING_SECONDS
        loading = self._replaced_at is not None and self.clock() - self._replaced_at < IN_VAIN_SECONDS
        return IN_VAIN_SECONDS if self._in_vain or loading else self.plan.deaf_seconds
