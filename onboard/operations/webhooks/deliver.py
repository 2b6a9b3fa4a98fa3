"""Use case: deliver messages from the outbox. A lease ensures that one worker delivers at a time."""

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
LEASE_SECONDS: Final = 120.0  # longer than one attempt, including the resolver's timeouts
GIVE_UP_SECONDS: Final = 3 * 24 * 3600.0  # after the event
_FIRST_RETRY_SECONDS: Final = 5.0
_LONGEST_RETRY_SECONDS: Final = 6 * 3600.0
_FACTOR: Final = 4.0


def retry_seconds(attempts: int) -> float:
    """Return the delay after a number of failed attempts: 5 s, 20 s, 80 s, …, at most 6 hours."""
    return min(_FIRST_RETRY_SECONDS * _FACTOR ** min(attempts - 1, 10), _LONGEST_RETRY_SECONDS)


def deliver(
    database: Database,
    webhooks: Webhooks,
    holder: str,
    stopped: Callable[[], bool] = lambda: False,
) -> int:
    """Deliver all due messages once. After a failure, the endpoint is skipped for the rest of the round.

    Args:
        stopped: called between two messages; True ends the round.

    Returns:
        The number of delivered messages.

    Raises:
        UnavailableError: the database cannot be reached.
    """
    names = [endpoint.name for endpoint in webhooks.endpoints]
    with database.glance() as session:
        if not OutboxRepository(session).has_work(names, GIVE_UP_SECONDS):
            return 0
    with database.write() as session:
        if not LeaseRepository(session).take(LEASE, holder, LEASE_SECONDS):
            return 0
        give_up(session)
        OutboxRepository(session).address(names, GIVE_UP_SECONDS)
    return sum(_deliver_to(endpoint, database, webhooks, holder, stopped) for endpoint in webhooks.endpoints)


def give_up(session: Session) -> None:
    """Give up messages that could not be delivered for too long, and log them."""
    for endpoint, count in OutboxRepository(session).give_up(GIVE_UP_SECONDS).items():
        _logger.error("Webhooks: %d messages to %s were given up three days after the event", count, endpoint)


def _deliver_to(
    endpoint: Endpoint, database: Database, webhooks: Webhooks, holder: str, stopped: Callable[[], bool]
) -> int:
    with database.read() as session:
        due = OutboxRepository(session).due(endpoint.name)
    for arrived, delivery in enumerate(due):
        with database.write() as session:  # renew the lease, so that no other worker sends the same message
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
