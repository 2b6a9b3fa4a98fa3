"""Places for uploads in progress; a slow upload loses its place when another client needs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from anyio import CancelScope

from onboard.api.places import caller, require_share
from onboard.errors import UnavailableError

PACE_BYTES_PER_SECOND: Final = 64 * 1024  # slower uploads, on average, may be displaced
SETTLED_SECONDS: Final = 2.0  # before that, the speed of an upload is unknown
_RETRY_SECONDS: Final = 10


@dataclass(eq=False)
class Sender:
    """An upload in progress.

    Args:
        began_at: by a monotonic clock.
        caller: owner of the share that it counts towards.
        received_bytes: size of its body so far.
        has_arrived: whether it is complete and can no longer be displaced.
    """

    began_at: float
    caller: str = ""
    received_bytes: int = 0
    has_arrived: bool = False
    scope: CancelScope = field(default_factory=CancelScope)

    def pace(self, now: float) -> float:
        """Return bytes per second so far."""
        return self.received_bytes / max(now - self.began_at, 1e-9)


class UploadPlaces:
    """Limits uploads that are received or on disk at the same time. Only for the event loop's thread.

    Args:
        most: number of places; one token gets half of them.
        clock: a monotonic clock.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._senders: set[Sender] = set()

    @contextmanager
    def place(self) -> Iterator[Sender]:
        """Hold a place until the block ends, if necessary that of the slowest sender.

        Raises:
            UnavailableError: there is none, or it was given to another client.
            RateLimitError: the caller already has its share.
        """
        mine = caller()
        require_share(sum(sender.caller == mine for sender in self._senders), self._most, _RETRY_SECONDS)
        if len(self._senders) >= self._most and not self._displace():
            raise UnavailableError("too-many-uploads", **_LATER)
        sender = Sender(self._clock(), mine)
        self._senders.add(sender)
        try:
            yield sender
        finally:
            self._senders.discard(sender)

    def _displace(self) -> bool:
        now = self._clock()
        slow = [
            sender
            for sender in self._senders
            if not sender.has_arrived
            and now - sender.began_at >= SETTLED_SECONDS
            and sender.pace(now) < PACE_BYTES_PER_SECOND
        ]
        if not slow:
            return False
        slowest = min(slow, key=lambda sender: sender.pace(now))
        self._senders.discard(slowest)
        slowest.scope.cancel()
        return True


def displaced() -> UnavailableError:
    """Return the error for a displaced sender."""
    return UnavailableError("upload-too-slow", kibibytes_per_second=PACE_BYTES_PER_SECOND // 1024, **_LATER)


_LATER: Final[dict[str, Any]] = {"retry_after_seconds": _RETRY_SECONDS}
