"""Run an action at intervals."""

from __future__ import annotations

import time


class Every:
    """Due at once, then again every so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0

    def due(self) -> bool:
        """Whether the time has come; asking begins the next wait."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + self._seconds
        return True
