"""Rate limits per caller, as token buckets in this process's memory, or counted with other servers in Redis."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from onboard.broker.shared_limits import SharedBuckets
from onboard.errors import RateLimitError

_MINUTE: Final = 60.0  # seconds
MOST_CALLERS: Final = 10_000  # remembered callers; the longest idle one is forgotten first


class RateLimit:
    """A limit of requests per minute, which may all come at once (a token bucket).

    Args:
        per_minute: 0 disables the limit.
        clock: a monotonic clock.
        shared: buckets of all servers; without Redis, or while it cannot be used, this process counts alone.
        name: of the shared limit.
    """

    def __init__(
        self,
        per_minute: int,
        clock: Callable[[], float] = time.monotonic,
        *,
        shared: SharedBuckets | None = None,
        name: str = "requests",
    ) -> None:
        self._per_minute = per_minute
        self._shared = shared if per_minute else None
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # caller → requests left, and when

    @property
    def waits(self) -> bool:
        """Whether counting waits for Redis, so that an event loop must not do it."""
        return self._shared is not None

    def require(self, caller: str) -> None:
        """Raise RateLimitError if the caller has no requests left; does not count one."""
        with self._lock:
            self._require(self._refilled(caller))
        self._require_shared(caller, take=False)

    def take(self, caller: str) -> None:
        """Count one request of the caller. Raises RateLimitError if none is left."""
        if not self._per_minute:
            return
        if self._shared is not None:  # whoever has used up this server's part has used up the whole
            with self._lock:
                self._require(self._refilled(caller))
            self._require_shared(caller, take=True)
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
            raise self._refusal((1 - left) * _MINUTE / self._per_minute)

    def _require_shared(self, caller: str, *, take: bool) -> None:
        if self._shared is None:
            return
        wait = self._shared.wait(self._name, caller, self._per_minute, take=take)
        if wait:
            raise self._refusal(wait)

    def _refusal(self, wait_seconds: float) -> RateLimitError:
        wait = max(1, math.ceil(wait_seconds))
        return RateLimitError("too-many-requests", retry_after_seconds=wait, per_minute=self._per_minute)
