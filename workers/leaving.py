"""How a worker exits: on request (its job may finish), after being idle, or because of a lasting problem."""

from __future__ import annotations

import logging
import os
import time
from typing import Final

from onboard.domain.worker import Trouble
from onboard.errors import ConflictError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.workers import WorkerRepository
from workers.children import Children
from workers.every import Every
from workers.plan import WorkerPlan
from workers.work_in_hand import WorkInHand

FAULTY_EXIT: Final = 1  # status of a worker that leaves because its process cannot come up
_STUCK_SECONDS: Final = 10.0  # a parent that has nothing left to wait for is ended by force after so long
_logger = logging.getLogger(__name__)


class Leaving:
    """From SIGTERM to the end of the process."""

    def __init__(self, database: Database, plan: WorkerPlan, work: WorkInHand, children: Children) -> None:
        self._database = database
        self._plan = plan
        self._work = work
        self._children = children
        self._beat = Every(plan.heartbeat_seconds)
        self._since: float | None = None
        self._is_known = False  # in the registry
        self._free_since: float | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the worker was asked to exit."""
        return self._since is not None

    def begin(self) -> None:
        """The worker takes no other job; once."""
        if self._since is None:
            self._since = time.monotonic()
            _logger.info("Draining; no further jobs are taken")

    def see_off(self) -> None:
        """Let the job finish; if it takes too long, hand it back to the queue and end its process."""
        assert self._since is not None
        now = time.monotonic()
        self._say_so()
        jobs = self._work.jobs()
        works = bool(jobs or self._work.helpers())
        if works and now - self._since >= self._plan.drain_seconds:
            self._work.hand_back(jobs)
            self._children.kill()  # Celery would go on waiting for the result of a task that is no longer anybody's
            self._end_by_force()
        if works:
            self._free_since = None
        elif self._free_since is None:
            self._free_since = now
        elif now - self._free_since > _STUCK_SECONDS:
            _logger.warning("The worker did not exit by itself; killing it")
            self._end_by_force()

    def without_database(self) -> None:
        """Exit while the database is unavailable: the job cannot be returned, so its lease has to expire."""
        if self._since is None or time.monotonic() - self._since < self._plan.drain_seconds:
            return
        _logger.warning(
            "Exiting without the database; the job, if there is one, returns to the queue when its lease expires"
        )
        self._children.kill()
        logging.shutdown()
        os._exit(0)

    def in_trouble(self, trouble: Trouble) -> None:
        """End at once. Whatever else fails on the way: this process must not stay as if all were well."""
        _logger.error("%s %s The worker exits.", trouble.message, trouble.remedy)
        try:
            self._children.kill()
            with self._database.write() as session:
                workers = WorkerRepository(session)
                workers.heartbeat(self._plan.name, {"trouble": trouble.to_json()})
                workers.stop(self._plan.name)
        except Exception:  # without its installation even that may fail
            _logger.exception("The worker could not sign off")
        finally:
            logging.shutdown()
            os._exit(FAULTY_EXIT)

    def outdated(self, error: ConflictError) -> None:
        """End at once, because a later release has changed the schema. The job returns to the queue if that is
        possible; otherwise it does so when its lease expires.
        """
        _logger.error("%s %s The worker exits; its job returns to the queue.", error.message, error.remedy)
        try:
            self._work.hand_back(self._work.jobs())
            with self._database.write() as session:
                WorkerRepository(session).stop(self._plan.name)
        except Exception:  # columns that it needs may be gone
            _logger.exception("The worker could not sign off")
        finally:
            self._children.kill()
            logging.shutdown()
            os._exit(0)

    def _say_so(self) -> None:
        if not self._is_known:
            with self._database.write() as session:
                WorkerRepository(session).begin_to_leave(self._plan.name)
            self._is_known = True
        if self._beat.due():
            with self._database.write() as session:
                WorkerRepository(session).heartbeat(self._plan.name)

    def _end_by_force(self) -> None:
        with self._database.write() as session:
            WorkerRepository(session).stop(self._plan.name)
        logging.shutdown()
        os._exit(0)


class Idleness:
    """How long a worker has had nothing to do."""

    def __init__(self, database: Database, plan: WorkerPlan) -> None:
        self._database = database
        self._plan = plan
        self._busy_at = time.monotonic()

    def lasts_too_long(self) -> bool:
        """Whether the worker has been idle for as long as its plan allows, and now counts as one that leaves."""
        if self._plan.idle_exit_seconds is None:
            return False
        with self._database.read() as session:
            open_jobs = ClaimRepository(session).open(self._plan.queues)
        now = time.monotonic()
        if open_jobs:
            self._busy_at = now
        if now - self._busy_at < self._plan.idle_exit_seconds:
            return False
        self._busy_at = now
        with self._database.write() as session:
            leaves = WorkerRepository(session).leave_if_idle(self._plan.name, self._plan.queues)
        if leaves:
            _logger.info("No work for %.0f s: exiting", self._plan.idle_exit_seconds)
        return leaves
