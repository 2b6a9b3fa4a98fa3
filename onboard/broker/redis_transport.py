"""Kombu's Redis transport, for bells: heard once, never acknowledged.

The stock one keeps every message that is in hand in Redis too, until it is acknowledged. An acknowledgement that breaks
off, because Redis is killed at that moment, leaves the message in hand for ever, and a worker with a message in hand
takes no other. A bell carries no work, so nothing is lost by forgetting it.

Nor does it read with care: what it cannot decode ends the worker, and what is no list in a queue's place does too.
"""

from __future__ import annotations

from queue import Empty
from typing import Any, Final

from kombu.transport import redis
from kombu.utils.encoding import bytes_to_str

from onboard.broker.bells import edge

_WRONG_TYPE: Final = "WRONGTYPE"


class Channel(redis.Channel):  # type: ignore[misc]  # kombu has no types
    """Bells are popped from a list, and that is all."""

    ack_emulation = False
    do_restore = False

    def _brpop_read(self, **options: Any) -> bool:
        """Hand on what a list gave, if it is a bell."""
        queue, raw = self._popped(options)
        self._queue_cycle.rotate(queue)
        bell = edge.bell(raw)
        if bell is None:
            raise Empty
        self.connection._deliver(bell, queue)
        return True

    def _popped(self, options: dict[str, Any]) -> tuple[str, bytes]:
        """Queue and content of one message. Raises Empty when there was none."""
        try:
            reply = self.client.parse_response(self.client.connection, "BRPOP", **options)
        except self.connection_errors:
            self.client.connection.disconnect()  # the next round connects anew
            raise
        except self.ResponseError as error:
            if not str(error).startswith(_WRONG_TYPE):
                raise
            reply = None
            self._drop_other_types()
        finally:
            self._in_poll = None
        if not reply:
            raise Empty
        key, raw = reply
        return bytes_to_str(key).rsplit(self.sep, 1)[0], raw

    def _drop_other_types(self) -> None:
        """What stands where a queue's list belongs keeps bells from being rung and from being heard."""
        with self.conn_or_acquire() as client:
            for queue in self.active_queues:
                for priority in self.priority_steps:
                    key = self._q_for_pri(queue, priority)
                    if bytes_to_str(client.type(key)) not in ("list", "none"):
                        client.delete(key)
                        edge.drop(f"the key of the queue did not contain a list: {queue}")


class Transport(redis.Transport):  # type: ignore[misc]  # kombu has no types
    """`redis://` and `rediss://` as the worker's and the submitter's Celery app use them."""

    Channel = Channel
