"""The thread in a worker's parent process: heartbeat, children, the reconciler, retention, and when to leave."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

from onboard import __version__
from onboard.domain.job import Job
from onboard.domain.release import release_name
from onboard.domain.worker import Trouble, WorkerState
from onboard.errors import FencedError, OnboardError
from onboard.jobs.doorbell import Doorbell, ring_or_warn
from onboard.operations.retention import retain
from onboard.operations.worker_logs import shorten_log
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services
from onboard.registry.shards import ShardRepository
from onboard.registry.workers import WorkerRepository
from workers.children import Children
from workers.hearing import Hearing
from workers.limits import Limits
from workers.logs import fields_of
from workers.machine import facts
from workers.plan import WorkerPlan
from workers.reconciler import reconcile
from workers.refitting import Refitting
from workers.renewal import begin_anew

_logger = logging.getLogger(__name__)
_TICK_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 5.0  # after a failure, a database that is away for example
_LOOK_SECONDS: Final = 2.0  # how often a running job is looked at
_RETENTION_SECONDS: Final = 3600.0  # how often rows that are kept no longer are looked for
FAULTY_EXIT: Final = 1  # status of a worker that leaves because its process cannot come up
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
        children: the pool's processes, and what is known of them.
        bell: which one is being answered by one of them, if any is.
        leave: begins the warm shutdown of the Celery worker.
    """

    def __init__(
        self,
        services: Services,
        plan: WorkerPlan,
        doorbell: Doorbell,
        hearing: Hearing,
        children: Children,
        bell: Callable[[], str | None],
        leave: Callable[[], None],
    ) -> None:
        super().__init__(name="upkeep", daemon=True)
        self._services = services
        self._plan = plan
        self._doorbell = doorbell
        self._hearing = hearing
        self._children = children
        self._bell = bell
        self._leave = leave
        self._limits = Limits(services.database, plan.name, plan.cancel_seconds, plan.lease_seconds)
        self._look = _Every(min(_LOOK_SECONDS, plan.heartbeat_seconds))
        self._told_release: int | None = None
        self._pids: set[int] = set()
        self._beat = _Every(plan.heartbeat_seconds)
        self._reconcile = _Every(plan.reconcile_seconds)
        self._listen = _Every(plan.reconcile_seconds)
        self._refitting = Refitting(services)
        self._outdated = _Every(_RETENTION_SECONDS)
        self._retaining = False
        self._busy_at = time.monotonic()
        self._leaving_since: float | None = None
        self._is_known_to_leave = False
        self._released_at: float | None = None
        self._has_rung = False
        self.stopping = threading.Event()  # set by SIGTERM
        self.over = threading.Event()  # set when the Celery worker has ended

    def run(self) -> None:
        """Tick until the worker is over. Nothing that goes wrong ends this thread."""
        while not self.over.wait(_TICK_SECONDS):
            try:
                self._touch_alive_file()
                self._tick()
            except OnboardError as error:
                _logger.warning("%s %s", error.message, error.remedy)
                self._leave_without_database()
                self.over.wait(_PAUSE_SECONDS)
            except Exception:  # the thread's outermost edge: without it the worker would fall silent
                _logger.exception("The worker's upkeep failed; it goes on")
        self._refitting.end()

    def _touch_alive_file(self) -> None:
        """While its process lives and can work; also while the database is away, which no restart would mend."""
        self._children.look()
        if self._plan.alive_file is not None and self._children.healthy:
            with contextlib.suppress(OSError):  # the health check finds out
                self._plan.alive_file.touch()

    def _tick(self) -> None:
        if self.stopping.is_set() and self._leaving_since is None:
            self._leaving_since = time.monotonic()
            _logger.info("Told to leave; it takes no other job")
        self._end_if_home_is_gone()
        self._notice_dead_children()
        if self._leaving_since is None:
            self._mend_children()
        if self._look.due() and self._limits.look(self._bell()):
            self._kill_children()
        if self._leaving_since is not None:
            self._see_job_off(self._leaving_since)
            return
        if self._beat.due():
            self._say_alive()
            if self._plan.settings.embedded:
                shorten_log(self._plan.settings.resolved_home)
        if not self._has_rung:
            self._ring_for_what_waits()
        if self._reconcile.due():
            mine = reconcile(self._services.database, self._doorbell, self._plan.name, 3 * self._plan.reconcile_seconds)
            self._warn_of_newer_jobs()
            if mine:
                self._retain()
                self._refitting.look()
        if self._children.healthy and self._listen.due() and self._hearing.look(self._bell() is not None):
            self._begin_anew()
        self._leave_when_idle()

    def _end_if_home_is_gone(self) -> None:
        settings = self._services.settings
        if settings.embedded and not settings.resolved_home.exists():
            os._exit(0)  # someone deleted ONBOARD_HOME: there is nothing left to work on, nor to log to

    def _notice_dead_children(self) -> None:
        present = self._children.pids()
        for pid in self._pids - present:
            self._expire(pid)
            self._hearing.process_was_replaced()
        self._pids = present

    def _mend_children(self) -> None:
        """Leave where no child comes up; replace one that could not load what jobs need, after a while."""
        trouble = self._children.hopeless()
        if trouble is not None:
            self._leave_in_trouble(trouble)
        if self._children.has_to_try_again():
            _logger.info("The worker's process is replaced, to try again what it could not load")
            self._kill_children()

    def _expire(self, pid: int) -> None:
        with self._services.database.write() as session:
            jobs = ClaimRepository(session).expire(self._plan.name, pid)
            ShardRepository(session).expire(self._plan.name, pid)
        for job in jobs:
            _logger.warning("Its process %d died; another attempt will follow", pid, extra=fields_of(job))
            ring_or_warn(self._doorbell, job.queue)

    def _leave_in_trouble(self, trouble: Trouble) -> None:
        """Whatever else fails on the way: this process must not stay as if all were well."""
        _logger.error("%s %s The worker leaves.", trouble.message, trouble.remedy)
        try:
            self._kill_children()
            with self._services.database.write() as session:
                workers = WorkerRepository(session)
                workers.heartbeat(self._plan.name, {"trouble": trouble.to_json()})
                workers.stop(self._plan.name)
        except Exception:  # without its installation even that may fail
            _logger.exception("The worker could not sign off")
        finally:
            logging.shutdown()
            os._exit(FAULTY_EXIT)

    def _say_alive(self) -> None:
        with self._services.database.read() as session:
            device, gpu_uuid = WorkerRepository(session).device(self._plan.name)
        seen = facts({os.getpid(), *self._pids}, self._plan.device, device, gpu_uuid)
        facts_now = {**seen, **self._hearing.facts(), **self._children.facts()}
        with self._services.database.write() as session:
            state = WorkerRepository(session).heartbeat(self._plan.name, facts_now)
        jobs = self._running()
        holders = {*(job.worker_pid for job in jobs if job.worker_pid is not None), *self._helping()}
        for pid in holders - self._children.pids():  # a child may have come and gone between two looks at the pool
            self._expire(pid)
        if state is WorkerState.DRAINING and not jobs:
            _logger.info("Drained")
            self._leave()

    def _begin_anew(self) -> None:
        """Deaf: whatever the reason, it is gone with what this process has in memory."""
        _logger.error("Jobs wait beside this worker, which is free and hears no bell: it begins anew")
        self._hearing.renewals += 1
        self._say_alive()
        children = self._children.pids()
        self._kill_children()
        begin_anew(self._plan, children)

    def _ring_for_what_waits(self) -> None:
        """At the start: the reconciler's lease may still be held by a worker that was killed."""
        with self._services.database.read() as session:
            runnable = ClaimRepository(session).runnable()
        for queue in runnable.keys() & set(self._plan.queues):
            ring_or_warn(self._doorbell, queue)
        self._has_rung = True

    def _warn_of_newer_jobs(self) -> None:
        """Once per release: jobs of its queues that this worker leaves to newer ones."""
        with self._services.database.read() as session:
            needed = ClaimRepository(session).too_new(self._plan.queues)
        if needed is not None and needed != self._told_release:
            _logger.warning(
                "Jobs wait for a worker of onboard %s or later; this one has %s and leaves them alone. "
                "Install that version here: pip install -U onboard",
                release_name(needed),
                __version__,
            )
        self._told_release = needed

    def _retain(self) -> None:
        """A batch a round, so that the heartbeat never waits for long; once nothing is left, not for an hour."""
        if self._outdated.due():
            self._retaining = True
        if not self._retaining:
            return
        gone = retain(self._services.database, self._services.settings)
        self._retaining = bool(gone)
        if gone:
            _logger.info("Retention: deleted %s", ", ".join(f"{count} {table}" for table, count in gone.items()))

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

    def _see_job_off(self, since: float) -> None:
        """After SIGTERM: let the job finish; if it takes too long, hand it back to the queue and end its process."""
        now = time.monotonic()
        if not self._is_known_to_leave:
            with self._services.database.write() as session:
                WorkerRepository(session).begin_to_leave(self._plan.name)
            self._is_known_to_leave = True
        if self._beat.due():
            with self._services.database.write() as session:
                WorkerRepository(session).heartbeat(self._plan.name)
        jobs = self._running()
        works = bool(jobs or self._helping())
        if works and now - since >= self._plan.drain_seconds:
            self._hand_back(jobs)
        if works:
            self._released_at = None
        elif self._released_at is None:
            self._released_at = now
        elif now - self._released_at > _STUCK_SECONDS:
            _logger.warning("The worker did not end by itself; ending it")
            self._end_by_force()

    def _leave_without_database(self) -> None:
        """Told to leave while the database is away: nothing can be handed back, so the job's lease has to run out."""
        if self._leaving_since is None or time.monotonic() - self._leaving_since < self._plan.drain_seconds:
            return
        _logger.warning("Leaving without the database; the job, if there is one, follows when its lease has run out")
        self._kill_children()
        logging.shutdown()
        os._exit(0)

    def _hand_back(self, jobs: list[Job]) -> None:
        for job in jobs:
            try:
                with self._services.database.write() as session:
                    ClaimRepository(session).release(job.id, job.attempt)
            except FencedError:
                continue  # it ended at the last moment
            _logger.warning("Handed back to the queue", extra=fields_of(job))
            ring_or_warn(self._doorbell, job.queue)
        with self._services.database.write() as session:
            ShardRepository(session).give_back_all(self._plan.name)
        # Celery would go on waiting for the result of a task that is no longer anybody's
        self._kill_children()
        self._end_by_force()

    def _kill_children(self) -> None:
        pids = self._children.pids()
        self._children.spare(pids)
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it was quicker
                os.kill(pid, signal.SIGKILL)

    def _end_by_force(self) -> None:
        with self._services.database.write() as session:
            WorkerRepository(session).stop(self._plan.name)
        logging.shutdown()
        os._exit(0)

    def _helping(self) -> list[int]:
        """The processes that answer shards of others' jobs, or of their own."""
        with self._services.database.read() as session:
            return ShardRepository(session).held(self._plan.name)

    def _running(self) -> list[Job]:
        with self._services.database.read() as session:
            return list(ClaimRepository(session).running(self._plan.name))
