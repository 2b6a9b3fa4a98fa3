"""How often one caller may ask: a bucket of tokens each, in this process's memory."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from onboard.errors import RateLimitError

_MINUTE: Final = 60.0  # seconds
MOST_CALLERS: Final = 10_000  # that are remembered; the one that was quiet for longest is forgotten first


class RateLimit:
    """So many requests in a minute, a whole minute's worth of them at once (a token bucket).

    Args:
        per_minute: 0 means any number.
        clock: seconds that never go backwards.
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller → requests left, and when

    def require(self, caller: str) -> None:
        """Raise RateLimitError when the caller has none left; takes none."""
        with self._lock:
            self._require(self._refilled(caller))

    def take(self, caller: str) -> None:
        """Count one request of the caller. Raises RateLimitError when it has none left."""
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
