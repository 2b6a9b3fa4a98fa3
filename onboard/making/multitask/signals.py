"""SIGTERM and SIGINT during training: save the state first, then exit."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StoppedError(Exception):
    """A signal ended the run in an orderly way. Finished work is in the work folder.

    Args:
        number: the signal.
        saved: a sentence about the saved state; empty if nothing was saved.
    """

    def __init__(self, number: int, saved: str = "") -> None:
        super().__init__(saved)
        self.number, self.saved = number, saved

    @property
    def exit_code(self) -> int:
        """143 after SIGTERM, 130 after SIGINT, as in shells."""
        return 128 + self.number


class Signals:
    """Handlers of SIGTERM and SIGINT that raise `StoppedError`, or within `deferred` only set a flag.

    Outside the main thread, signals are not handled.
    """

    def __init__(self) -> None:
        self.caught: int | None = None
        self._deferred = False

    @contextmanager
    def handled(self) -> Iterator[Signals]:
        """Handle both signals within the block."""
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Within the block, a signal only sets `caught`."""
        self._deferred = True
        try:
            yield
        finally:
            self._deferred = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.caught = number
        if not self._deferred:
            raise StoppedError(number)
