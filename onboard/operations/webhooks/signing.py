"""A message and its signature, following the Standard Webhooks specification."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Sequence

from onboard.domain.moment import to_iso
from onboard.domain.webhook import Delivery


def body_of(delivery: Delivery) -> bytes:
    """Return the message, identical for every attempt."""
    document = {"type": delivery.type, "timestamp": to_iso(delivery.at), "data": delivery.data}
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def headers_of(delivery: Delivery, body: bytes, now: int, keys: Sequence[bytes]) -> dict[str, str]:
    """Return the headers that verify the message.

    Args:
        now: the time of this attempt, in epoch seconds.
        keys: one signature is made with each.
    """
    signed = f"{delivery.id}.{now}.".encode() + body
    signatures = (base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
    return {
        "webhook-id": delivery.id,
        "webhook-timestamp": str(now),
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }
