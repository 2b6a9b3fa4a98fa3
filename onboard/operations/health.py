"""Use cases: what a health check looks at: the clock of the database, who works, what waits for worker or receiver."""

from __future__ import annotations

from collections.abc import Sequence

from onboard.domain.task import BaseRecord
from onboard.domain.webhook import EndpointState
from onboard.domain.worker import WorkerRecord
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.outbox import OutboxRepository
from onboard.registry.workers import WorkerRepository


def database_clock(database: Database) -> float:
    """What the database's clock says now, in epoch seconds. Raises UnavailableError where the database is away."""
    with database.read() as session:
        return read_clock(session)


def base_at(database: Database, location: str) -> BaseRecord | None:
    """The base that was last registered from this folder; None where there was none."""
    with database.read() as session:
        bases = [base for base in BaseRepository(session).list() if base.location == location]
    return bases[-1] if bases else None


def live_workers(database: Database) -> list[WorkerRecord]:
    """The workers that gave a sign of life lately."""
    with database.read() as session:
        return [worker for worker in WorkerRepository(session).list() if worker.live]


def claimable(database: Database) -> dict[str, int]:
    """How many jobs could be claimed now, by queue."""
    with database.read() as session:
        return ClaimRepository(session).runnable()


def webhook_standing(database: Database) -> Sequence[EndpointState]:
    """How deliveries stand, by endpoint."""
    with database.read() as session:
        return OutboxRepository(session).standing()
