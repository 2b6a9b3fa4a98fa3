"""The thread in a worker's parent process: its heartbeat, its children, the reconciler, and when to leave."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

from onboard.domain.job import Job
from onboard.domain.worker import WorkerState
from onboard.errors import FencedError, OnboardError
from onboard.queue import Doorbell, ring_or_warn
from onboard.registry.claims import ClaimRepository
from onboard.registry.workers import WorkerRepository
from onboard.services import Services
from workers.machine import facts
from workers.plan import WorkerPlan
from workers.reconciler import reconcile

_logger = logging.getLogger(__name__)
_TICK_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 5.0  # after a failure, a database that is away for example
_STUCK_SECONDS: Final = 10.0  # a parent that has nothing left to wait for is ended by force after so long


class _Every:
    """True at once, then again every so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0

    def due(self) -> bool:
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True


class Upkeep(threading.Thread):
    """Looks after one worker until it has left.

    Args:
        pool_pids: the pool's processes at the moment.
        leave: begins the warm shutdown of the Celery worker.
    """

    def __init__(
        self,
        services: Services,
        plan: WorkerPlan,
        doorbell: Doorbell,
        pool_pids: Callable[[], set[int]],
        leave: Callable[[], None],
    ) -> None:
        super().__init__(name="upkeep", daemon=True)
        self._services = services
        self._plan = plan
        self._doorbell = doorbell
        self._pool_pids = pool_pids
        self._leave = leave
        self._children: set[int] = set()
        self._beat = _Every(plan.heartbeat_seconds)
        self._reconcile = _Every(plan.reconcile_seconds)
        self._busy_at = time.monotonic()
        self._leaving_since: float | None = None
        self._released_at: float | None = None
        self._has_rung = False
        self.stopping = threading.Event()  # set by SIGTERM
        self.over = threading.Event()  # set when the Celery worker has ended

    def run(self) -> None:
        """Tick until the worker is over. Nothing that goes wrong ends this thread."""
        while not self.over.wait(_TICK_SECONDS):
            try:
                self._tick()
            except OnboardError as error:
                _logger.warning("%s %s", error.message, error.remedy)
                self.over.wait(_PAUSE_SECONDS)
            except Exception:  # the thread's outermost edge: without it the worker would fall silent
                _logger.exception("The worker's upkeep failed; it goes on")

    def _tick(self) -> None:
        self._end_if_home_is_gone()
        self._notice_dead_children()
        if self.stopping.is_set():
            self._stop()
            return
        if self._beat.due():
            self._say_alive()
        if not self._has_rung:
            self._ring_for_what_waits()
        if self._reconcile.due():
            reconcile(self._services.database, self._doorbell, self._plan.name, 3 * self._plan.reconcile_seconds)
        self._leave_when_idle()

    def _end_if_home_is_gone(self) -> None:
        settings = self._services.settings
        if settings.embedded and not settings.resolved_home.exists():
            os._exit(0)  # someone deleted ONBOARD_HOME: there is nothing left to work on, nor to log to

    def _notice_dead_children(self) -> None:
        present = self._pool_pids()
        for pid in self._children - present:
            self._expire(pid)
        self._children = present

    def _expire(self, pid: int) -> None:
        with self._services.database.write() as session:
            jobs = ClaimRepository(session).expire(self._plan.name, pid)
        for job in jobs:
            _logger.warning("Job %s: its process %d died; another attempt will follow", job.id, pid)
            ring_or_warn(self._doorbell, job.queue)

    def _say_alive(self) -> None:
        seen = facts({os.getpid(), *self._children})
        with self._services.database.write() as session:
            state = WorkerRepository(session).heartbeat(self._plan.name, seen)
        jobs = self._running()
        for job in jobs:  # a child may have come and gone between two looks at the pool
            if job.worker_pid is not None and job.worker_pid not in self._pool_pids():
                self._expire(job.worker_pid)
        if state is WorkerState.DRAINING and not jobs:
            _logger.info("Drained")
            self._leave()

    def _ring_for_what_waits(self) -> None:
        """At the start: the reconciler's lease may still be held by a worker that was killed."""
        with self._services.database.read() as session:
            runnable = ClaimRepository(session).runnable()
        for queue in runnable.keys() & set(self._plan.queues):
            ring_or_warn(self._doorbell, queue)
        self._has_rung = True

    def _leave_when_idle(self) -> None:
        if self._plan.idle_exit_seconds is None:
            return
        with self._services.database.read() as session:
            open_jobs = ClaimRepository(session).open(self._plan.queues)
        now = time.monotonic()
        if open_jobs:
            self._busy_at = now
        if now - self._busy_at < self._plan.idle_exit_seconds:
            return
        self._busy_at = now
        with self._services.database.write() as session:
            gone = WorkerRepository(session).leave_if_idle(self._plan.name, self._plan.queues)
        if gone:
            _logger.info("Nothing to do for %.0f s: leaving", self._plan.idle_exit_seconds)
            self._leave()

    def _stop(self) -> None:
        """After SIGTERM: let the job finish; if it takes too long, hand it back to the queue and end its process."""
        now = time.monotonic()
        if self._leaving_since is None:
            self._leaving_since = now
            with self._services.database.write() as session:
                WorkerRepository(session).begin_to_leave(self._plan.name)
        if self._beat.due():
            with self._services.database.write() as session:
                WorkerRepository(session).heartbeat(self._plan.name)
        jobs = self._running()
        if jobs and now - self._leaving_since >= self._plan.drain_seconds:
            self._hand_back(jobs)
        if jobs:
            self._released_at = None
        elif self._released_at is None:
            self._released_at = now
        elif now - self._released_at > _STUCK_SECONDS:
            _logger.warning("The worker did not end by itself; ending it")
            self._end_by_force()

    def _hand_back(self, jobs: list[Job]) -> None:
        for job in jobs:
            try:
                with self._services.database.write() as session:
                    ClaimRepository(session).release(job.id, job.attempt)
            except FencedError:
                continue  # it ended at the last moment
            _logger.warning("Job %s: handed back to the queue", job.id)
            ring_or_warn(self._doorbell, job.queue)
        # Celery would go on waiting for the result of a task that is no longer anybody's
        for pid in self._pool_pids():
            os.kill(pid, signal.SIGKILL)
        self._end_by_force()

    def _end_by_force(self) -> None:
        with self._services.database.write() as session:
            WorkerRepository(session).stop(self._plan.name)
        logging.shutdown()
        os._exit(0)

    def _running(self) -> list[Job]:
        with self._services.database.read() as session:
            return list(ClaimRepository(session).running(self._plan.name))
