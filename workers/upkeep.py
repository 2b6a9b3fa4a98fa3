"""The thread in a worker's parent process: heartbeat, children, housekeeping, and when to leave."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from typing import Final

from onboard.domain.worker import WorkerState
from onboard.errors import ConflictError, OnboardError
from onboard.jobs.doorbell import Doorbell, ring_or_warn
from onboard.operations.worker_logs import shorten_log
from onboard.registry.claims import ClaimRepository
from onboard.registry.schema import require_still_fitting
from onboard.registry.services import Services
from onboard.registry.workers import WorkerRepository
from workers.children import Children
from workers.every import Every
from workers.hearing import Hearing
from workers.housekeeping import Housekeeping
from workers.leaving import Idleness, Leaving
from workers.limits import Limits
from workers.machine import facts
from workers.plan import WorkerPlan
from workers.renewal import begin_anew
from workers.work_in_hand import WorkInHand

_logger = logging.getLogger(__name__)
_TICK_SECONDS: Final = 0.5
_PAUSE_SECONDS: Final = 5.0  # after a failure, a database that is away for example
_LOOK_SECONDS: Final = 5.0  # how often a running job is looked at: limits are minutes, a look asks three questions


class Upkeep(threading.Thread):
    """Maintains one worker until it has exited.

    Args:
        children: the pool's processes and their state.
        bell: the message that one of them is handling, if any.
        leave: starts the warm shutdown of the Celery worker.
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
        database = services.database
        self._services = services
        self._plan = plan
        self._doorbell = doorbell
        self._hearing = hearing
        self._children = children
        self._bell = bell
        self._leave = leave
        self._work = WorkInHand(database, plan.name, doorbell)
        self._limits = Limits(database, plan.name, plan.cancel_seconds, plan.lease_seconds)
        self._housekeeping = Housekeeping(services, plan, doorbell)
        self._leaving = Leaving(database, plan, self._work, children)
        self._idleness = Idleness(database, plan)
        self._look = Every(min(_LOOK_SECONDS, plan.heartbeat_seconds))
        self._beat = Every(plan.heartbeat_seconds)
        self._schema = Every(plan.heartbeat_seconds)
        self._listen = Every(plan.reconcile_seconds)
        self._known_pids: set[int] = set()
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
                self._leaving.without_database()
                self.over.wait(_PAUSE_SECONDS)
            except Exception:  # the thread's outermost edge: without it the worker would fall silent
                _logger.exception("The worker's upkeep failed; it continues")
        self._housekeeping.end()

    def _touch_alive_file(self) -> None:
        """While its process lives and can work; also while the database is away, which no restart would mend."""
        self._children.look()
        if self._plan.alive_file is not None and self._children.healthy:
            with contextlib.suppress(OSError):  # the health check finds out
                self._plan.alive_file.touch()

    def _tick(self) -> None:
        self._end_if_home_is_gone()
        if self.stopping.is_set():
            self._leaving.begin()
        self._end_if_outdated()
        self._notice_dead_children()
        if self._leaving.has_begun:
            self._enforce_limits()
            self._leaving.see_off()
        else:
            self._mend_children()
            self._enforce_limits()
            self._work_on()

    def _work_on(self) -> None:
        """The periodic work of a worker in addition to its jobs."""
        if self._beat.due():
            self._say_alive()
            if self._plan.settings.embedded:
                shorten_log(self._plan.settings.resolved_home)
        if not self._has_rung:
            self._ring_for_what_waits()
        self._housekeeping.look()
        if self._children.healthy and self._listen.due() and self._hearing.look(self._bell() is not None):
            self._begin_anew()
        if self._idleness.lasts_too_long():
            self._leave()

    def _end_if_home_is_gone(self) -> None:
        settings = self._services.settings
        if settings.embedded and not settings.resolved_home.exists():
            os._exit(0)  # someone deleted ONBOARD_HOME: there is nothing left to work on, nor to log to

    def _end_if_outdated(self) -> None:
        """Leave before anything else uses the database if this release does not work on its schema any more."""
        if not self._schema.due():
            return
        try:
            require_still_fitting(self._services.database)
        except ConflictError as error:
            self._leaving.outdated(error)

    def _notice_dead_children(self) -> None:
        present = self._children.pids()
        for pid in self._known_pids - present:
            self._work.expire(pid)
            self._hearing.process_was_replaced()
        self._known_pids = present

    def _mend_children(self) -> None:
        """Leave where no child comes up; replace one that could not load what jobs need, after a while."""
        trouble = self._children.hopeless()
        if trouble is not None:
            self._leaving.in_trouble(trouble)
        if self._children.has_to_try_again():
            _logger.info("Replacing the worker's process to retry what it could not load")
            self._children.kill()

    def _enforce_limits(self) -> None:
        if self._look.due() and self._limits.look(self._bell()):
            self._children.kill()

    def _say_alive(self) -> None:
        with self._services.database.read() as session:
            device, gpu_uuid = WorkerRepository(session).device(self._plan.name)
        seen = facts({os.getpid(), *self._known_pids}, self._plan.device, device, gpu_uuid)
        facts_now = {**seen, **self._hearing.facts(), **self._children.facts()}
        with self._services.database.write_lightly() as session:
            state = WorkerRepository(session).heartbeat(self._plan.name, facts_now)
        jobs = self._work.jobs()
        holders = {*(job.worker_pid for job in jobs if job.worker_pid is not None), *self._work.helpers()}
        for pid in holders - self._children.pids():  # a child may have come and gone between two looks at the pool
            self._work.expire(pid)
        if state is WorkerState.DRAINING and not jobs:
            _logger.info("Drained")
            self._leave()

    def _begin_anew(self) -> None:
        """Unresponsive: a restart with empty memory removes the cause, whatever it is."""
        _logger.error(
            "Jobs wait although this worker is idle, and it receives no messages from the broker: restarting it"
        )
        self._hearing.renewals += 1
        self._say_alive()
        children = self._children.pids()
        self._children.kill()
        begin_anew(self._plan, children)

    def _ring_for_what_waits(self) -> None:
        """At the start: the reconciler's lease may still be held by a worker that was killed."""
        with self._services.database.read() as session:
            runnable = ClaimRepository(session).runnable()
        for queue in runnable.keys() & set(self._plan.queues):
            ring_or_warn(self._doorbell, queue)
        self._has_rung = True
