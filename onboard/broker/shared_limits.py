"""Rate limits that several servers count together, as token buckets in Redis."""

from __future__ import annotations

import hashlib
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from onboard.broker.url import require_broker_url

if TYPE_CHECKING:
    from onboard.settings import Settings

_LOG: Final = logging.getLogger(__name__)
_SECONDS: Final = 0.25  # for connecting and for an answer: a request waits no longer
_PAUSE_SECONDS: Final = 5.0  # without Redis after an error

# Redis runs a script as one step, and its clock is the same for all servers.
_SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local full = tonumber(ARGV[1])
local bucket = redis.call('HMGET', KEYS[1], 'left', 'at')
local left = full
if bucket[1] then left = math.min(full, bucket[1] + math.max(0, now - bucket[2]) * full / 60) end
if left < 1 then return tostring((1 - left) * 60 / full) end
if ARGV[2] == '1' then
  redis.call('HSET', KEYS[1], 'left', tostring(left - 1), 'at', string.format('%.6f', now))
  redis.call('EXPIRE', KEYS[1], 61)
end
return '0'
"""


class SharedBuckets:
    """The token buckets of all servers that use the same Redis. Thread-safe.

    Args:
        clock: a monotonic clock.

    Raises:
        InputError: the URL is invalid.
    """

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        from redis import Redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        require_broker_url(url)
        self._clock = clock
        self._guard = threading.Lock()
        self._away_until: float | None = None
        url = re.sub("(?<=ssl_cert_reqs=CERT_)[A-Z]+", lambda level: level[0].lower(), url).replace("=CERT_", "=")
        once = Retry(NoBackoff(), 1)  # the kept connection may be older than Redis
        self._redis = Redis.from_url(url, socket_timeout=_SECONDS, socket_connect_timeout=_SECONDS, retry=once)
        self._script: Any = self._redis.register_script(_SCRIPT)

    def wait(self, bucket: str, caller: str, per_minute: int, *, take: bool) -> float | None:
        """Return the seconds until the caller may send a request; 0 if now, None if Redis cannot be used.

        Args:
            caller: is stored as a digest only.
            per_minute: requests per minute, at least one.
            take: whether to count a request if there is room.
        """
        from redis import RedisError

        with self._guard:
            if self._away_until is not None and self._clock() < self._away_until:
                return None
        key = f"onboard.limit.{bucket}.{hashlib.sha256(caller.encode()).hexdigest()[:32]}"
        try:
            seconds = float(self._script(keys=[key], args=[per_minute, int(take)]))
        except (RedisError, OSError, ValueError) as error:
            self._note_away(error)
            return None
        self._note_present()
        return seconds

    def close(self) -> None:
        """Close the connections; the next request opens them again."""
        self._redis.close()

    def _note_away(self, error: Exception) -> None:
        with self._guard:
            first, self._away_until = self._away_until is None, self._clock() + _PAUSE_SECONDS
        if first:
            reason = type(error).__name__  # its text may quote the password
            _LOG.warning("Redis cannot be used (%s). This server counts rate limits alone until it can.", reason)

    def _note_present(self) -> None:
        if self._away_until is None:
            return
        with self._guard:
            back, self._away_until = self._away_until is not None, None
        if back:
            _LOG.warning("Redis can be used again. Rate limits are counted with the other servers.")


def shared_buckets(settings: Settings) -> SharedBuckets | None:
    """Return the buckets in the broker's Redis; None if the broker is a folder. Makes no connection.

    Raises:
        InputError: the broker's URL is invalid.
    """
    url = settings.resolved_broker_url
    return SharedBuckets(url) if url.startswith(("redis://", "rediss://")) else None
