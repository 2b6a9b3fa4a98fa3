"""Progress of predicted rows with rate and remaining time: a bar on a terminal, otherwise a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from cli.output import say
from onboard.domain.moment import seconds_text

LINE_SECONDS: Final = 5.0  # interval of lines without a terminal
_AT_ONCE_SECONDS: Final = 0.05


class RowProgress:
    """The number of predicted rows, and of all rows.

    Args:
        bar: a rich progress bar; None prints lines.
        clock: monotonic time in seconds.
    """

    def __init__(self, bar: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock = bar, clock
        self._task: Any = None
        self._rows = self._done = self._before = 0
        self._began = self._said = clock()

    def begin(self, rows: int) -> None:
        """Set the number of all rows."""
        self._rows, self._began = rows, self._clock()
        self._said = self._began
        if self._bar is not None:
            self._task = self._bar.add_task("", total=rows, speed="")

    def add(self, rows: int) -> None:
        """Add predicted rows."""
        now = self._clock()
        self._done += rows
        if now - self._began < _AT_ONCE_SECONDS:  # too fast for a model: these rows were predicted earlier
            self._before, self._began = self._done, now
        rate = self._rate(now)
        if self._bar is not None:
            self._bar.update(self._task, advance=rows, speed="" if rate is None else f"{rate:,.0f} rows/s")
        elif now - self._said >= LINE_SECONDS:
            self._said = now
            say(self.sentence(now))

    def sentence(self, now: float) -> str:
        """Return the progress as text."""
        rate = self._rate(now)
        if not rate:
            return f"{self._done:,} of {self._rows:,} rows"
        remaining = seconds_text((self._rows - self._done) / rate)
        return f"{self._done:,} of {self._rows:,} rows, {rate:,.0f} rows/s, about {remaining} left"

    def _rate(self, now: float) -> float | None:
        answered, seconds = self._done - self._before, now - self._began
        return answered / seconds if answered and seconds > 0 else None


@contextmanager
def row_progress() -> Iterator[RowProgress]:
    """Show progress while the block runs."""
    if not sys.stderr.isatty():
        yield RowProgress()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from cli.console import CleanConsole

    columns = BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TextColumn("{task.fields[speed]}")
    with Progress(*columns, TimeRemainingColumn(), console=CleanConsole(stderr=True)) as bar:
        yield RowProgress(bar)
