"""The outbox of webhooks: an event is written in the transaction of its change, and sent later.

Writers of events do not know the endpoints. Workers create a delivery of each event for each endpoint.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal_column,
    or_,
    select,
    update,
)
from sqlalchemy.orm import aliased

from onboard.domain.webhook import Delivery, EndpointState
from onboard.registry.clock import database_now
from onboard.registry.repository import Repository
from onboard.registry.upsert import insert_for
from onboard.registry.webhook_tables import WebhookDeliveryRow, WebhookEventRow

WAITING: Final = "waiting"
DELIVERED: Final = "delivered"
GIVEN_UP: Final = "given_up"
BATCH: Final = 50
SHOWN_SECONDS: Final = 24 * 3600.0  # how long a message that was given up is shown as a problem
_LONGEST_ERROR: Final = 500  # characters
# Identical to the index condition, because SQLite does not infer it from "waiting".
_OPEN: Final = WebhookDeliveryRow.state != literal_column("'delivered'")
_WAITS: Final = and_(_OPEN, WebhookDeliveryRow.state == WAITING)


class OutboxRepository(Repository):
    """Events and their deliveries."""

    def add(self, kind: str, data: dict[str, Any]) -> None:
        """Write an event. It is only sent if this transaction commits."""
        values = {"id": f"msg_{secrets.token_hex(12)}", "type": kind, "data": data, "at": database_now()}
        self._session.execute(insert(WebhookEventRow).values(values))

    def has_work(self, endpoints: Collection[str], most_seconds: float) -> bool:
        """Return whether any other method would find work, without writing."""
        due = exists().where(
            _WAITS, WebhookDeliveryRow.endpoint.in_(endpoints), WebhookDeliveryRow.next_at <= database_now()
        )
        overdue = exists().where(_WAITS, WebhookDeliveryRow.event.in_(_older(most_seconds)))
        return bool(self._session.scalar(select(or_(exists().where(_unaddressed(most_seconds)), due, overdue))))

    def address(self, endpoints: Collection[str], most_seconds: float) -> None:
        """Create a delivery per endpoint for new events that are not older than `most_seconds`."""
        new = select(WebhookEventRow.id, WebhookEventRow.at).where(_unaddressed(most_seconds))
        events = self._session.execute(new.order_by(WebhookEventRow.at).limit(BATCH)).all()
        rows = [
            {"event": event, "endpoint": endpoint, "state": WAITING, "attempts": 0, "next_at": at}
            for event, at in events
            for endpoint in endpoints
        ]
        if not rows:
            return
        self._session.execute(insert_for(self._session, WebhookDeliveryRow).on_conflict_do_nothing(), rows)
        addressed = update(WebhookEventRow).where(WebhookEventRow.id.in_([event for event, _ in events]))
        self._session.execute(addressed.values(addressed_at=database_now()))

    def due(self, endpoint: str) -> Sequence[Delivery]:
        """Return deliveries to attempt now, at most `BATCH`, longest due first."""
        statement = (
            select(WebhookEventRow, WebhookDeliveryRow.attempts)
            .join(WebhookDeliveryRow, WebhookDeliveryRow.event == WebhookEventRow.id)
            .where(
                _WAITS,
                WebhookDeliveryRow.endpoint == endpoint,
                WebhookDeliveryRow.next_at <= database_now(),
            )
            .order_by(WebhookDeliveryRow.next_at)
            .limit(BATCH)
        )
        return [
            Delivery(event.id, endpoint, event.type, event.at, event.data, attempts)
            for event, attempts in self._session.execute(statement)
        ]

    def delivered(self, delivery: Delivery) -> None:
        """Mark a delivery as delivered."""
        self._set(delivery, state=DELIVERED, error=None, ended_at=database_now())

    def failed(self, delivery: Delivery, error: str, retry_seconds: float | None) -> None:
        """Record a failed attempt. It is retried after `retry_seconds`, or given up if None."""
        shortened = error[:_LONGEST_ERROR]
        if retry_seconds is None:
            self._set(delivery, state=GIVEN_UP, error=shortened, ended_at=database_now())
        else:
            self._set(delivery, error=shortened, next_at=database_now() + retry_seconds)

    def give_up(self, most_seconds: float) -> dict[str, int]:
        """Give up deliveries of events older than `most_seconds`, including those to endpoints that no worker serves.

        Returns:
            The number of deliveries by endpoint.
        """
        overdue = update(WebhookDeliveryRow).where(_WAITS, WebhookDeliveryRow.event.in_(_older(most_seconds)))
        never = "it was never tried: no worker had this endpoint in its settings"
        values = {
            "state": GIVEN_UP,
            "ended_at": database_now(),
            "error": func.coalesce(WebhookDeliveryRow.error, never),
        }
        ended = self._session.scalars(overdue.values(values).returning(WebhookDeliveryRow.endpoint))
        return dict(Counter(ended))

    def standing(self) -> Sequence[EndpointState]:
        """Return the state of each endpoint with waiting or recently given up messages."""
        statement = (
            select(
                WebhookDeliveryRow.endpoint,
                _count(WebhookDeliveryRow.state == WAITING),
                _count(and_(WebhookDeliveryRow.state == WAITING, WebhookDeliveryRow.attempts > 0)),
                _count(WebhookDeliveryRow.state == GIVEN_UP),
                _newest_error(),
            )
            .where(_shown(WebhookDeliveryRow))
            .group_by(WebhookDeliveryRow.endpoint)
            .order_by(WebhookDeliveryRow.endpoint)
        )
        return [
            EndpointState(endpoint, int(waits), int(fails), int(gone), error)
            for endpoint, waits, fails, gone, error in self._session.execute(statement)
        ]

    def drop_undelivered(self) -> int:
        """Drop all undelivered messages and return their number.

        Events without a delivery only count if any event was ever delivered or scheduled.
        """
        addressed = self._session.scalar(select(exists().where(WebhookDeliveryRow.event.is_not(None))))
        waiting = delete(WebhookDeliveryRow).where(_WAITS).returning(WebhookDeliveryRow.event)
        dropped = set(self._session.scalars(waiting))
        new = update(WebhookEventRow).where(WebhookEventRow.addressed_at.is_(None))
        silenced = set(self._session.scalars(new.values(addressed_at=database_now()).returning(WebhookEventRow.id)))
        return len(dropped | silenced if addressed else dropped)

    def _set(self, delivery: Delivery, **values: Any) -> None:
        row = update(WebhookDeliveryRow).where(
            WebhookDeliveryRow.event == delivery.id,
            WebhookDeliveryRow.endpoint == delivery.endpoint,
            WebhookDeliveryRow.state == WAITING,
        )
        self._session.execute(row.values(attempts=WebhookDeliveryRow.attempts + 1, tried_at=database_now(), **values))


def _shown(row: type[WebhookDeliveryRow]) -> ColumnElement[bool]:
    lately = and_(row.state == GIVEN_UP, row.ended_at > database_now() - SHOWN_SECONDS)
    return and_(row.state != literal_column("'delivered'"), or_(row.state == WAITING, lately))


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


def _newest_error() -> ColumnElement[str]:
    """Return the newest error of an endpoint, preferring errors of actual attempts."""
    delivery = aliased(WebhookDeliveryRow)
    return (
        select(delivery.error)
        .where(_shown(delivery), delivery.endpoint == WebhookDeliveryRow.endpoint, delivery.error.is_not(None))
        .order_by(func.coalesce(delivery.tried_at, 0.0).desc())
        .limit(1)
        .scalar_subquery()
    )


def _unaddressed(most_seconds: float) -> ColumnElement[bool]:
    return and_(WebhookEventRow.addressed_at.is_(None), WebhookEventRow.at > database_now() - most_seconds)


def _older(seconds: float) -> Select[str]:
    return select(WebhookEventRow.id).where(WebhookEventRow.at <= database_now() - seconds)
