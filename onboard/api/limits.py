"""Rate limits per caller, as token buckets in this process's memory."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from onboard.errors import RateLimitError

_MINUTE: Final = 60.0  # seconds
MOST_CALLERS: Final = 10_000  # remembered callers; the longest idle one is forgotten first


class RateLimit:
    """A limit of requests per minute, which may all come at once (a token bucket).

    Args:
        per_minute: 0 disables the limit.
        clock: a monotonic clock.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller → requests left, and when

    def require(self, caller: str) -> None:
        """Raise RateLimitError if the caller has no requests left; does not count one."""
        with self._lock:
            self._require(self._refilled(caller))

    def take(self, caller: str) -> None:
        """Count one request of the caller. Raises RateLimitError if none is left."""
        if not self._per_minute:
            return
        with self._lock:
            left = self._refilled(caller)
            self._require(left)
            self._left[caller] = (left - 1, self._clock())
            self._left.move_to_end(caller)
            if len(self._left) > MOST_CALLERS:
                self._left.popitem(last=False)

    def _refilled(self, caller: str) -> float:
        full = float(self._per_minute)
        left, then = self._left.get(caller, (full, 0.0))
        return min(full, left + (self._clock() - then) * full / _MINUTE)

    def _require(self, left: float) -> None:
        if self._per_minute and left < 1:
            wait = math.ceil((1 - left) * _MINUTE / self._per_minute)
            raise RateLimitError("too-many-requests", retry_after_seconds=wait, per_minute=self._per_minute)
