"""A running job's events, fenced by its attempt; and the thread that keeps its lease."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Final

from onboard.domain.bulk import ShardClaim
from onboard.domain.job import EventKind, Job, Stage
from onboard.errors import CancelledError, FencedError, OnboardError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.shards import ShardRepository
from workers.logs import log_stage

_logger = logging.getLogger(__name__)
_LOOK_SECONDS: Final = 2.0  # how soon a request to cancel is seen


class Heartbeat:
    """Extends a lease in a thread, as a context manager, and hears of cancelling and of losing what it is of.

    Args:
        extend: extends the lease; returns whether to stop, raises FencedError when another has it.
        look: the same, but for extending: cheaper.
        heartbeat_seconds: time between extensions.
    """

    def __init__(
        self, name: str, extend: Callable[[], bool], look: Callable[[], bool], heartbeat_seconds: float
    ) -> None:
        self._name, self._extend, self._look = name, extend, look
        self._heartbeat_seconds = heartbeat_seconds
        self._over = threading.Event()
        self.cancelled = threading.Event()
        self.fenced = threading.Event()
        self._thread = threading.Thread(target=copy_context().run, args=(self._beat,), name=name, daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def raise_if_stopped(self) -> None:
        """Raise CancelledError or FencedError as was heard; no database work."""
        if self.fenced.is_set():
            raise FencedError("claim-fenced", name=self._name)
        if self.cancelled.is_set():
            raise CancelledError("claim-stopped", name=self._name)

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


def job_heartbeat(database: Database, job: Job, lease_seconds: float, heartbeat_seconds: float) -> Heartbeat:
    """Of an attempt at a job."""

    def extend() -> bool:
        with database.write_lightly() as session:
            return ClaimRepository(session).heartbeat(job.id, job.attempt, lease_seconds)

    def look() -> bool:
        with database.glance() as session:
            return ClaimRepository(session).cancel_requested(job.id, job.attempt)

    return Heartbeat(f"heartbeat-{job.id}", extend, look, heartbeat_seconds)


def shard_heartbeat(database: Database, claim: ShardClaim, lease_seconds: float, heartbeat_seconds: float) -> Heartbeat:
    """Of a shard of a job that another worker runs."""

    def extend() -> bool:
        with database.write_lightly() as session:
            return ShardRepository(session).extend(claim, lease_seconds)

    def look() -> bool:
        with database.glance() as session:
            return ShardRepository(session).stops(claim)

    return Heartbeat(f"heartbeat-{claim.job}-{claim.number}", extend, look, heartbeat_seconds)


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
            raise FencedError("job-fenced", job=self._job.id, attempt=self._job.attempt)
        if self._heartbeat.cancelled.is_set():
            raise CancelledError("job-cancelled-running", job=self._job.id)

    def _append(
        self, kind: EventKind, message: str, seconds: float | None = None, numbers: dict[str, Any] | None = None
    ) -> None:
        with self._database.write_lightly() as session:
            asked = ClaimRepository(session).append(
                self._job.id, self._job.attempt, kind, message, stage=self._stage, seconds=seconds, numbers=numbers
            )
        if asked:
            self._heartbeat.cancelled.set()
