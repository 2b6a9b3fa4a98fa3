"""Dataclasses as documents."""

from __future__ import annotations

import json
from dataclasses import dataclass

from onboard.domain.documents import document_of


@dataclass(frozen=True)
class Shipment:
    name: str
    sent_at: float
    lost_at: float | None
    at: float
    parts: tuple[str, ...]
    secret: str = "s"


SENT = Shipment("tea", 0.0, None, 1.5, ("leaf", "bag"))


def test_a_document_has_the_fields_in_their_order_with_moments_in_utc_and_lists() -> None:
    document = {
        "name": "tea", "sent_at": "1970-01-01T00:00:00.000Z", "lost_at": None, "at": "1970-01-01T00:00:01.500Z",
        "parts": ["leaf", "bag"], "secret": "s",
    }  # fmt: skip
    assert json.dumps(document_of(SENT)) == json.dumps(document)


def test_fields_can_be_left_out_and_told_otherwise() -> None:
    document = document_of(SENT, "secret", "at", name="coffee", lost_at="never")
    assert document == {
        "name": "coffee", "sent_at": "1970-01-01T00:00:00.000Z", "lost_at": "never", "parts": ["leaf", "bag"],
    }  # fmt: skip
