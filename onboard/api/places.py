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
    """

    def __init__(self, most: int, full: str, remedy: str = "Try again later.", *, retry_seconds: int = 10) -> None:
        super().__init__(most)
        self._full, self._remedy, self._retry_seconds = full, remedy, retry_seconds

    @contextmanager
    def place(self) -> Iterator[None]:
        """A place until the block ends. Raises UnavailableError: there is none."""
        if not self.acquire(blocking=False):
            raise UnavailableError(self._full, self._remedy, retry_after_seconds=self._retry_seconds)
        try:
            yield
        finally:
            self.release()
