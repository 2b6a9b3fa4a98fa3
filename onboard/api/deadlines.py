"""Time limits for receiving a request: one for the head, one for the body.

uvicorn waits without limit. A client that sends a byte now and then could hold its connection, and an upload its place,
forever.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS: Final = 20.0  # from the connection, or the first byte of a later request, to the end of the head
BODY_SECONDS: Final = 30.0  # base time for a body, in addition to the time for its bytes
BODY_BYTES_PER_SECOND: Final = 16 * 1024  # extend the time by one second


class Deadlines(H11Protocol):
    """uvicorn's protocol with time limits. Late clients get a 408 unless a response has begun, and are disconnected.

    The time stops while the application does not read, as this is not the client's fault.
    """

    head_seconds = HEAD_SECONDS
    body_seconds = BODY_SECONDS

    _sending: Any = None  # what is expected: IDLE a head, SEND_BODY a body, None nothing
    _timer: asyncio.TimerHandle | None = None
    _deadline = 0.0
    _has_sent = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Start the time limit of the first head."""
        super().connection_made(transport)
        self._watch(0)

    def data_received(self, data: bytes) -> None:
        """Receive data; data of a body extends its time."""
        self._has_sent = True
        super().data_received(data)
        self._watch(len(data))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all time limits."""
        super().connection_lost(exc)
        self._stop()

    def _owed(self) -> Any:
        state = self.conn.their_state
        return state if state in (h11.IDLE, h11.SEND_BODY) else None

    def _watch(self, received: int) -> None:
        owed = self._owed()
        if owed is self._sending and owed is h11.SEND_BODY:
            self._deadline += received / BODY_BYTES_PER_SECOND
        if owed is self._sending:
            return
        self._stop()
        self._sending = owed
        if owed is not None and not self.transport.is_closing():
            seconds = self.head_seconds if owed is h11.IDLE else self.body_seconds
            self._deadline = self.loop.time() + seconds
            self._timer = self.loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._timer = None
        if self.transport.is_closing() or self._owed() is not self._sending:
            self._sending = None
            return
        now = self.loop.time()
        if self.flow.read_paused:
            self._deadline = now + self.body_seconds
        if now < self._deadline:
            self._timer = self.loop.call_later(self._deadline - now, self._look)
            return
        self._cut_off()

    def _stop(self) -> None:
        self._sending = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        self.logger.warning("A sender took too long and was cut off.")
        if self._has_sent and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            said = b"The request took too long to arrive."
            headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close")]
            length = ("content-length", str(len(said)))
            for event in (
                h11.Response(status_code=408, headers=[*headers, length], reason=b"Request Timeout"),
                h11.Data(data=said),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True  # readers of the body notice it at once
            self.cycle.message_event.set()
        self.transport.close()
