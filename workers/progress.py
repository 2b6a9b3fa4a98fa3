"""A running job's events, fenced by its attempt; and the thread that keeps its lease."""

from __future__ import annotations

import logging
import threading
import time
from contextvars import copy_context
from typing import Any, Final

from onboard.domain.job import EventKind, Job, Stage
from onboard.errors import CancelledError, FencedError, OnboardError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from workers.logs import log_stage

_logger = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0  # how soon a request to cancel is seen


class Heartbeat:
    """Extends the lease of a job in a thread, as a context manager, and hears of cancelling and of losing the job.

    Args:
        lease_seconds: how long each beat makes the lease.
        heartbeat_seconds: time between beats.
    """

    def __init__(self, database: Database, job: Job, lease_seconds: float, heartbeat_seconds: float) -> None:
        self._database = database
        self._job = job
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._over = threading.Event()
        self.cancelled = threading.Event()
        self.fenced = threading.Event()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._beat,), name=f"heartbeat-{job.id}", daemon=True
        )

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        last = time.monotonic()
        while not self._over.wait(min(_LOOK_SECONDS, self._heartbeat_seconds)) and not self.fenced.is_set():
            due = time.monotonic() - last >= self._heartbeat_seconds
            try:
                asked = self._extend() if due else self._look()
            except FencedError:
                self.fenced.set()
            except OnboardError as error:  # the database is away; the lease may outlast that
                _logger.warning("No heartbeat: %s", error.message)
            else:
                last = time.monotonic() if due else last
                if asked:
                    self.cancelled.set()

    def _extend(self) -> bool:
        with self._database.write() as session:
            return ClaimRepository(session).heartbeat(self._job.id, self._job.attempt, self._lease_seconds)

    def _look(self) -> bool:
        with self._database.read() as session:
            return ClaimRepository(session).cancel_requested(self._job.id, self._job.attempt)


class RegistryProgress:
    """The Progress of a claimed job: every call is one small transaction, fenced by the attempt."""

    def __init__(self, database: Database, job: Job, heartbeat: Heartbeat) -> None:
        self._database = database
        self._job = job
        self._heartbeat = heartbeat
        self._stage: Stage | None = None

    def stage_started(self, stage: Stage) -> None:
        """The job enters a stage."""
        self._stage = stage
        log_stage(stage)
        self._append("stage_started", f"{stage.value} started")

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        """The stage ended after `seconds`."""
        self._stage = stage
        self._append("stage_finished", f"{stage.value} finished", seconds, numbers)

    def note(self, message: str, **numbers: Any) -> None:
        """One line of progress inside the present stage."""
        self._append("note", message, None, numbers)

    def raise_if_cancelled_or_fenced(self) -> None:
        """Raise CancelledError or FencedError as the heartbeat has heard; no database work."""
        if self._heartbeat.fenced.is_set():
            raise FencedError(f"Attempt {self._job.attempt} no longer owns job {self._job.id}.", job=self._job.id)
        if self._heartbeat.cancelled.is_set():
            raise CancelledError(f"Job {self._job.id} was cancelled while it ran.", job=self._job.id)

    def _append(
        self, kind: EventKind, message: str, seconds: float | None = None, numbers: dict[str, Any] | None = None
    ) -> None:
        with self._database.write() as session:
            asked = ClaimRepository(session).append(
                self._job.id, self._job.attempt, kind, message, stage=self._stage, seconds=seconds, numbers=numbers
            )
        if asked:
            self._heartbeat.cancelled.set()
