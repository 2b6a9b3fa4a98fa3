"""A fair lock that its holder can lend to others between two batches."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class Turns:
    """A lock that goes to whoever has waited longest, and that its holder may lend to those who wait."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = False
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def taken(self, seconds: float | None = None) -> Iterator[bool]:
        """Hold the lock within the block; yields False if it was not available within `seconds`.

        None waits without limit.
        """
        held = self._take(seconds)
        try:
            yield held
        finally:
            if held:
                self._pass_on()

    def give_way(self) -> None:
        """Let everybody who waits now go first; only for the holder."""
        self._pass_on()
        self._take()

    def _take(self, seconds: float | None = None) -> bool:
        with self._guard:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Event()
            self._waiting.append(mine)
        if not mine.wait(seconds):
            with self._guard:
                if mine in self._waiting:  # otherwise it was granted just now
                    self._waiting.remove(mine)
                    return False
        return True

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
