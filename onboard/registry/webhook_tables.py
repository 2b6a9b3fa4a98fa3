"""The tables of the webhook outbox: events and deliveries."""

from __future__ import annotations

from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import Table, partial_index


class WebhookEventRow(Table):
    """An event for webhooks, written in the transaction of its change.

    `addressed_at` is null until every endpoint of the workers' settings has a delivery.
    """

    __tablename__ = "webhook_events"
    id: Mapped[str] = mapped_column(primary_key=True)
    type: Mapped[str]
    data: Mapped[dict[str, Any]]
    at: Mapped[float] = mapped_column(index=True)
    addressed_at: Mapped[float | None]
    __table_args__ = (partial_index("ix_webhook_events_new", "at", where="addressed_at IS NULL"),)


class WebhookDeliveryRow(Table):
    """The delivery of an event to one endpoint, identified by its host and a digest of its URL."""

    __tablename__ = "webhook_deliveries"
    event: Mapped[str] = mapped_column(ForeignKey("webhook_events.id", ondelete="CASCADE"), primary_key=True)
    endpoint: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    attempts: Mapped[int]
    next_at: Mapped[float]
    tried_at: Mapped[float | None]
    ended_at: Mapped[float | None]  # when it was delivered or given up
    error: Mapped[str | None] = mapped_column(Text)
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'delivered', 'given_up')", name="known_state"),
        partial_index("ix_webhook_deliveries_open", "state", "endpoint", "next_at", where="state <> 'delivered'"),
    )
