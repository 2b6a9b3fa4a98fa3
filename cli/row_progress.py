"""How many rows are answered, how fast, and how long the rest takes: a bar on a terminal, elsewhere a line at times."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from cli.output import say
from onboard.domain.moment import seconds_text

LINE_SECONDS: Final = 5.0  # between two lines where no terminal shows a bar
_AT_ONCE_SECONDS: Final = 0.05


class RowProgress:
    """Rows that are answered, of all.

    Args:
        bar: of rich; None writes lines.
        clock: seconds that only grow.
    """

    def __init__(self, bar: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._bar, self._clock = bar, clock
        self._task: Any = None
        self._rows = self._done = self._before = 0
        self._began = self._said = clock()

    def begin(self, rows: int) -> None:
        """There are so many."""
        self._rows, self._began = rows, self._clock()
        self._said = self._began
        if self._bar is not None:
            self._task = self._bar.add_task("", total=rows, speed="")

    def add(self, rows: int) -> None:
        """So many more are answered."""
        now = self._clock()
        self._done += rows
        if now - self._began < _AT_ONCE_SECONDS:  # no model is so fast: they were answered before
            self._before, self._began = self._done, now
        rate = self._rate(now)
        if self._bar is not None:
            self._bar.update(self._task, advance=rows, speed="" if rate is None else f"{rate:,.0f} rows/s")
        elif now - self._said >= LINE_SECONDS:
            self._said = now
            say(self.sentence(now))

    def sentence(self, now: float) -> str:
        """How far it is."""
        rate = self._rate(now)
        if not rate:
            return f"{self._done:,} of {self._rows:,} rows"
        left = seconds_text((self._rows - self._done) / rate)
        return f"{self._done:,} of {self._rows:,} rows, {rate:,.0f} rows/s, about {left} left"

    def _rate(self, now: float) -> float | None:
        answered, seconds = self._done - self._before, now - self._began
        return answered / seconds if answered and seconds > 0 else None


@contextmanager
def row_progress() -> Iterator[RowProgress]:
    """Progress for as long as the block runs."""
    if not sys.stderr.isatty():
        yield RowProgress()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from cli.console import CleanConsole

    columns = BarColumn(), MofNCompleteColumn(), TextColumn("rows"), TextColumn("{task.fields[speed]}")
    with Progress(*columns, TimeRemainingColumn(), console=CleanConsole(stderr=True)) as bar:
        yield RowProgress(bar)
