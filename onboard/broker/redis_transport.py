"""Kombu's Redis transport for doorbell messages: delivered once, without acknowledgements.

The original also keeps unacknowledged messages in Redis. If Redis is killed during an acknowledgement, the message
stays unacknowledged forever, and the worker accepts no other. A doorbell message carries no data, so losing one is
harmless.

The original also stops the worker when a message cannot be decoded, or when the queue's key is not a list.
"""

from __future__ import annotations

from queue import Empty
from typing import Any, Final

from kombu.transport import redis
from kombu.utils.encoding import bytes_to_str

from onboard.broker.bells import edge

_WRONG_TYPE: Final = "WRONGTYPE"


class Channel(redis.Channel):  # type: ignore[misc]  # kombu has no types
    """Pops messages from a list, without acknowledgements."""

    ack_emulation = False
    do_restore = False

    def _brpop_read(self, **options: Any) -> bool:
        """Deliver a popped message if it is a doorbell message."""
        queue, raw = self._popped(options)
        self._queue_cycle.rotate(queue)
        bell = edge.bell(raw)
        if bell is None:
            raise Empty
        self.connection._deliver(bell, queue)
        return True

    def _popped(self, options: dict[str, Any]) -> tuple[str, bytes]:
        """Return the queue and content of one message. Raises Empty if there was none."""
        try:
            reply = self.client.parse_response(self.client.connection, "BRPOP", **options)
        except self.connection_errors:
            self.client.connection.disconnect()  # the next round reconnects
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
        """Delete keys of another type under a queue's name, which would block sending and receiving."""
        with self.conn_or_acquire() as client:
            for queue in self.active_queues:
                for priority in self.priority_steps:
                    key = self._q_for_pri(queue, priority)
                    if bytes_to_str(client.type(key)) not in ("list", "none"):
                        client.delete(key)
                        edge.drop(f"the key of the queue did not contain a list: {queue}")


class Transport(redis.Transport):  # type: ignore[misc]  # kombu has no types
    """The `redis://` and `rediss://` transport of workers and of processes that submit."""

    Channel = Channel
