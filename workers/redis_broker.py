"""Kombu's Redis transport, for bells: heard once, never acknowledged.

The stock one keeps every message that is in hand in Redis too, until it is acknowledged. An acknowledgement that breaks
off, because Redis is killed at that moment, leaves the message in hand for ever, and a worker with a message in hand
takes no other. A bell carries no work, so nothing is lost by forgetting it.
"""

from __future__ import annotations

from kombu.transport import redis


class Channel(redis.Channel):  # type: ignore[misc]  # kombu has no types
    """Bells are popped from a list, and that is all."""

    ack_emulation = False
    do_restore = False


class Transport(redis.Transport):  # type: ignore[misc]  # kombu has no types
    """`redis://` and `rediss://` as the worker's and the submitter's Celery app use them."""

    Channel = Channel
