"""Use cases for health checks: the database's clock, live workers, waiting jobs and webhooks."""

from __future__ import annotations

from collections.abc import Sequence

from onboard.domain.task import BaseRecord
from onboard.domain.webhook import EndpointState
from onboard.domain.worker import WorkerRecord
from onboard.errors import ConflictError, UnavailableError
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.outbox import OutboxRepository
from onboard.registry.schema import require_still_fitting
from onboard.registry.workers import WorkerRepository


def database_clock(database: Database) -> float:
    """Return the database's time in epoch seconds. Raises UnavailableError."""
    with database.read() as session:
        return read_clock(session)


def require_usable(database: Database) -> None:
    """Raise UnavailableError if the database cannot be reached, or a later release has changed its schema."""
    try:
        require_still_fitting(database)
    except ConflictError as error:
        raise UnavailableError.like(error) from error


def base_at(database: Database, location: str) -> BaseRecord | None:
    """Return the base that was last registered from this folder, or None."""
    with database.read() as session:
        bases = [base for base in BaseRepository(session).list() if base.location == location]
    return bases[-1] if bases else None


def live_workers(database: Database) -> list[WorkerRecord]:
    """Return the workers that sent a heartbeat recently."""
    with database.read() as session:
        return [worker for worker in WorkerRepository(session).list() if worker.live]


def claimable(database: Database) -> dict[str, int]:
    """Return the number of claimable jobs by queue."""
    with database.read() as session:
        return ClaimRepository(session).runnable()


def webhook_standing(database: Database) -> Sequence[EndpointState]:
    """Return the delivery state of each endpoint."""
    with database.read() as session:
        return OutboxRepository(session).standing()
