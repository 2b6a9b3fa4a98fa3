"""SIGTERM and SIGINT during hours of training: the state is saved first, then the run ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StoppedError(Exception):
    """A signal ended the run in order; what was done so far is in the work folder.

    Args:
        number: the signal.
        saved: what was saved, a sentence; empty when there was nothing to save.
    """

    def __init__(self, number: int, saved: str = "") -> None:
        super().__init__(saved)
        self.number, self.saved = number, saved

    @property
    def exit_code(self) -> int:
        """143 after SIGTERM, 130 after SIGINT, as shells have it."""
        return 128 + self.number


class Signals:
    """Handlers of SIGTERM and SIGINT: they raise `StoppedError`, or within `deferred` only take note.

    Outside the main thread nothing is handled.
    """

    def __init__(self) -> None:
        self.caught: int | None = None
        self._deferred = False

    @contextmanager
    def handled(self) -> Iterator[Signals]:
        """Within the block both signals are ours."""
        before = {number: signal.signal(number, self._handle) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Within the block a signal sets `caught` and nothing else."""
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
