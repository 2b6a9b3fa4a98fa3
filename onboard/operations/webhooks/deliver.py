"""Use case: deliver what waits in the outbox. One worker at a time does it; the others find its lease taken."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from onboard.domain.webhook import Delivery, Endpoint, Webhooks
from onboard.errors import NotFoundError, OnboardError
from onboard.operations.webhooks.request import post
from onboard.operations.webhooks.signing import body_of, headers_of
from onboard.registry.database import Database
from onboard.registry.leases import LeaseRepository
from onboard.registry.outbox import OutboxRepository

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

_logger = logging.getLogger(__name__)
LEASE: Final = "webhooks"
LEASE_SECONDS: Final = 120.0  # more than one attempt takes, the resolver's own time limits included
GIVE_UP_SECONDS: Final = 3 * 24 * 3600.0  # after it happened
_FIRST_RETRY_SECONDS: Final = 5.0
_LONGEST_RETRY_SECONDS: Final = 6 * 3600.0
_FACTOR: Final = 4.0


def retry_seconds(attempts: int) -> float:
    """How long to wait after so many attempts in vain: 5 s, 20 s, 80 s, … and at last 6 hours."""
    return min(_FIRST_RETRY_SECONDS * _FACTOR ** min(attempts - 1, 10), _LONGEST_RETRY_SECONDS)


def deliver(
    database: Database,
    webhooks: Webhooks,
    holder: str,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """One round. An endpoint that fails is left alone for the rest of it.

    Args:
        holder: who delivers; one at a time does.
        stopped: asked between two messages.

    Returns:
        How many messages arrived.

    Raises:
        UnavailableError: the database cannot be reached.
    """
    names = [endpoint.name for endpoint in webhooks.endpoints]
    with database.read() as session:
        if not OutboxRepository(session).has_work(names, GIVE_UP_SECONDS):
            return 0
    with database.write() as session:
        if not LeaseRepository(session).take(LEASE, holder, LEASE_SECONDS):
            return 0
        give_up(session)
        OutboxRepository(session).address(names, GIVE_UP_SECONDS)
    return sum(_deliver_to(endpoint, database, webhooks, holder, stopped) for endpoint in webhooks.endpoints)


def give_up(session: Session) -> None:
    """End what could not be delivered for too long, and say so."""
    for endpoint, count in OutboxRepository(session).give_up(GIVE_UP_SECONDS).items():
        _logger.error("Webhooks: %d messages to %s were given up three days after the event", count, endpoint)


def _deliver_to(
    endpoint: Endpoint, database: Database, webhooks: Webhooks, holder: str, stopped: Callable[[], bool]
) -> int:
    with database.read() as session:
        due = OutboxRepository(session).due(endpoint.name)
    for arrived, delivery in enumerate(due):
        with database.write() as session:  # else another worker might send the same at this moment
            mine = LeaseRepository(session).take(LEASE, holder, LEASE_SECONDS)
        if stopped() or not mine or not _attempt(endpoint, delivery, database, webhooks):
            return arrived
    return len(due)


def _attempt(endpoint: Endpoint, delivery: Delivery, database: Database, webhooks: Webhooks) -> bool:
    body = body_of(delivery)
    try:
        post(endpoint, body, headers_of(delivery, body, int(time.time()), webhooks.keys), insecure=webhooks.insecure)
    except OnboardError as error:
        _logger.warning("Webhook %s to %s: %s", delivery.id, endpoint.name, error.message)
        retry = None if isinstance(error, NotFoundError) else retry_seconds(delivery.attempts + 1)
        with database.write() as session:
            OutboxRepository(session).failed(delivery, error.message, retry)
        return False
    with database.write() as session:
        OutboxRepository(session).delivered(delivery)
    return True
