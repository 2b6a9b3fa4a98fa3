"""The missing runs of a plan, run by run, each row written as soon as it is there, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TypeVar

from bench.harness.command import deadline
from bench.harness.rows import Row, append

RunT = TypeVar("RunT")


def measure_missing(
    plan: Sequence[RunT],
    there: Collection[RunT],
    row_of: Callable[[RunT], Row],
    line_of: Callable[[RunT, Row], str],
    work: Path,
    hours: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Measure what the file lacks, and append each row.

    Args:
        plan: this process's part.
        there: runs that the file holds.
        row_of: measures one.
        line_of: a row in a line.
        work: the file.
        hours: after which no further run begins; None lets it end.
        clock: seconds.
    """
    missing = [run for run in plan if run not in there]
    print(f"{len(plan) - len(missing)} of {len(plan)} runs are in {work}", flush=True)
    time_is_up = deadline(hours, clock)
    for number, run in enumerate(missing, 1):
        if time_is_up():
            print(f"the time is up: {len(missing) - number + 1} runs are left; the same command goes on", flush=True)
            return
        row = row_of(run)
        append(work, row)
        print(f"{number}/{len(missing)}  {line_of(run, row)}", flush=True)
