"""Places for uploads while they come in: a slow one gives its place up when somebody else needs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from anyio import CancelScope

from onboard.api.places import caller, require_share
from onboard.errors import UnavailableError

PACE_BYTES_PER_SECOND: Final = 64 * 1024  # whoever is slower than that, over all of its upload, may be displaced
SETTLED_SECONDS: Final = 2.0  # before that nobody knows how fast it will be
_RETRY_SECONDS: Final = 10


@dataclass(eq=False)
class Sender:
    """One upload on its way.

    Args:
        began_at: by a clock that only grows.
        caller: whose share the place is of.
        received_bytes: of its body so far.
        has_arrived: whether all of it has come; then it is no sender any more.
    """

    began_at: float
    caller: str = ""
    received_bytes: int = 0
    has_arrived: bool = False
    scope: CancelScope = field(default_factory=CancelScope)

    def pace(self, now: float) -> float:
        """Bytes a second so far."""
        return self.received_bytes / max(now - self.began_at, 1e-9)


class UploadPlaces:
    """So many uploads that are received or lie on disk at once. All of it in the thread of the event loop.

    Args:
        most: how many there are; one token gets half of them.
        clock: seconds that only grow.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._senders: set[Sender] = set()

    @contextmanager
    def place(self) -> Iterator[Sender]:
        """A place until the block ends, if need be that of the slowest sender.

        Raises:
            UnavailableError: there is none; or it was given to somebody else.
            RateLimitError: the caller has its share of them already.
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
    """What a sender is told whose place was given to another."""
    return UnavailableError("upload-too-slow", kibibytes_per_second=PACE_BYTES_PER_SECOND // 1024, **_LATER)


_LATER: Final[dict[str, Any]] = {"retry_after_seconds": _RETRY_SECONDS}
