"""Limits of concurrent requests, with a share per token; further requests are refused for now."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from onboard.domain.access import current_actor
from onboard.errors import RateLimitError, UnavailableError

_NOBODY: Final = "nobody"  # without an acting request, as in tests


def caller() -> str:
    """Return the owner of the share: the token, or the browser of the sign-in link."""
    return current_actor() or _NOBODY


def share_of(most: int) -> int:
    """Return how many places one token may hold: half, so that others always find some."""
    return max(1, most // 2)


def require_share(held: int, most: int, retry_seconds: int) -> None:
    """Refuse a place to a token that already holds its share. Raises RateLimitError."""
    share = share_of(most)
    if held >= share:
        raise RateLimitError("too-many-requests-of-token", retry_after_seconds=retry_seconds, share=share)


class RequestPlaces:
    """Places that requests hold while they run. Thread-safe.

    Args:
        most: number of places; one token gets half of them.
        full: message if there is none; clients may retry after `retry_seconds`.
    """

    def __init__(
        self,
        most: int,
        full: str,
        remedy: str = "Try again later.",
        *,
        retry_seconds: int = 10,
        error: type[UnavailableError] = UnavailableError,
    ) -> None:
        self._most = most
        self._full, self._remedy, self._retry_seconds, self._error = full, remedy, retry_seconds, error
        self._guard = threading.Lock()
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """Number of occupied places."""
        return self._held.total()

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place of the caller until the block ends.

        Raises:
            UnavailableError (`error`): there is none.
            RateLimitError: the caller already holds its share.
        """
        holder = caller()
        with self._guard:
            if self.held >= self._most:
                raise self._error(self._full, self._remedy, retry_after_seconds=self._retry_seconds)
            require_share(self._held[holder], self._most, self._retry_seconds)
            self._held[holder] += 1
        try:
            yield
        finally:
            with self._guard:
                self._held[holder] -= 1
                if not self._held[holder]:
                    del self._held[holder]
