"""End jobs from the parent process if their own process does not: native code may hang for ever.

A process that reaches its next step stops there, because ending the job in the registry fences it.
This module is for processes that never reach it. Such a process may hold a lock of the database for as long as it
lives, so that killing it depends on reading alone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onboard.domain.job import Job, JobState
from onboard.errors import CancelledError, FencedError, UnavailableError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.shards import ShardRepository
from workers.logs import fields_of

_logger = logging.getLogger(__name__)


@dataclass
class Limits:
    """Watches over what one worker runs.

    Args:
        worker: the worker's name.
        cancel_seconds: how long a job may go on after someone asked to cancel it.
        stray_seconds: how long a process may go on without a job, having lost its lease or used up its time.
        clock: seconds that only grow.
    """

    database: Database
    worker: str
    cancel_seconds: float
    stray_seconds: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._asked: dict[tuple[str, int], float] = {}  # job and attempt: when its cancellation was requested
        self._bell: str | None = None
        self._stray_since: float | None = None
        self._has_killed = False  # for this bell, since it was last seen with a job

    def look(self, bell: str | None) -> bool:
        """End jobs that exceeded their time limit, and cancelled ones that do not respond.

        Args:
            bell: the message that the worker's process is handling; None while it is free.

        Returns:
            Whether that process has to be killed. Returned only once: the next process must not be killed as it starts.
        """
        if bell != self._bell:
            self._settle()
        self._bell = bell
        if bell is None:
            return False
        with self.database.read() as session:
            overdue = ClaimRepository(session).overdue(self.worker)
            held = ClaimRepository(session).holding(self.worker)
            helps = ShardRepository(session).helps(self.worker)
        if overdue:
            self._end_overdue()
        if helps and not held:
            self._settle()
            return False
        kill = self._cancels_any(held) if held else self._is_stray()
        self._has_killed = self._has_killed or kill
        return kill

    def _settle(self) -> None:
        self._stray_since = None
        self._has_killed = False

    def _end_overdue(self) -> None:
        try:
            with self.database.write() as session:
                ended = ClaimRepository(session).end_overdue(self.worker)
        except UnavailableError as error:
            _logger.warning("A job has exceeded its time limit but cannot be ended yet: %s", error.message)
            return
        for job in ended:
            _logger.warning("%s", (job.error or {})["message"], extra=fields_of(job))

    def _cancels_any(self, held: Sequence[Job]) -> bool:
        self._settle()
        now = self.clock()
        asked = {(job.id, job.attempt): job for job in held if job.cancel_requested}
        self._asked = {job: self._asked.get(job, now) for job in asked}
        deaf = [asked[job] for job, since in self._asked.items() if now - since >= self.cancel_seconds]
        cancelled = [job for job in deaf if self._cancel(job)]
        return bool(cancelled)

    def _cancel(self, job: Job) -> bool:
        try:
            with self.database.write() as session:
                error = CancelledError("job-cancelled-unresponsive", id=job.id)
                ClaimRepository(session).finish(job.id, job.attempt, JobState.CANCELLED, error=error.to_json())
        except FencedError:
            return False  # it has just ended by itself
        except UnavailableError as away:  # without its process its lease ends, and it is cancelled for that
            _logger.warning("The job is being cancelled: %s", away.message, extra=fields_of(job))
        _logger.warning("Cancelled; its process did not respond and is killed", extra=fields_of(job))
        return True

    def _is_stray(self) -> bool:
        now = self.clock()
        self._stray_since = now if self._stray_since is None else self._stray_since
        if self._has_killed or now - self._stray_since < self.stray_seconds:
            return False
        _logger.warning("The worker's process still runs without a job; it is killed")
        return True
