"""So many requests at once, and of each token a share of them: whoever finds no place is asked to come again."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from onboard.domain.access import current_actor
from onboard.errors import RateLimitError, UnavailableError

_NOBODY: Final = "nobody"  # where no request acts, as in tests


def caller() -> str:
    """Whose share it is: the token's, or that of the browser that came by the sign-in link."""
    return current_actor() or _NOBODY


def share_of(most: int) -> int:
    """How many of so many places one token may hold: half of them, so that others always find some."""
    return max(1, most // 2)


def require_share(held: int, most: int, retry_seconds: int) -> None:
    """Refuse a place to a token that holds its share already. Raises RateLimitError."""
    share = share_of(most)
    if held >= share:
        raise RateLimitError("too-many-requests-of-token", retry_after_seconds=retry_seconds, share=share)


class Places:
    """Places that requests hold while they are at work. Safe in threads.

    Args:
        most: how many there are; one token gets half of them.
        full: what whoever finds none reads; they may come again in `retry_seconds`.
        error: how.
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
        """How many are taken just now."""
        return self._held.total()

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place of whoever asks until the block ends; it counts from here on.

        Raises:
            UnavailableError (`error`): there is none.
            RateLimitError: the caller holds its share already.
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
