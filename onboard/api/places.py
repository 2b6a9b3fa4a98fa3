"""So many requests at once: whoever finds no place is asked to come again."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from onboard.errors import UnavailableError


class Places(threading.BoundedSemaphore):
    """Places that requests hold while they are at work.

    Args:
        most: how many there are.
        full: what whoever finds none is told; they may come again in `retry_seconds`.
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
        super().__init__(most)
        self._full, self._remedy, self._retry_seconds, self._error = full, remedy, retry_seconds, error

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place until the block ends. Raises `error`: there is none."""
        if not self.acquire(blocking=False):
            raise self._error(self._full, self._remedy, retry_after_seconds=self._retry_seconds)
        try:
            yield
        finally:
            self.release()
