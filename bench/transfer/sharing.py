"""The runs of a plan that a file holds, and those that it lacks, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.harness.missing_runs import measure_missing
from bench.harness.rows import Row, finished, plain
from bench.transfer.cells import TrainingRun

Settings = Callable[[TrainingRun], Mapping[str, Any]]


def rows_of(plan: Sequence[TrainingRun], settings: Settings, work: Path) -> dict[TrainingRun, Row]:
    """The runs of the plan that the file holds, made with these settings; of several the first."""
    planned = set(plan)
    by_run: dict[TrainingRun, Row] = {}
    for row in finished(work):
        recipe = row.get("recipe", "")  # recipes of older rows had no names
        run = TrainingRun(row["task"], row["shots"], row["seed"], row["method"], row["start"], recipe)
        if run in planned and run not in by_run and row["settings"] == plain(settings(run)):
            by_run[run] = row
    return by_run


def run_missing(
    plan: Sequence[TrainingRun],
    measure: Callable[[TrainingRun], Row],
    settings: Settings,
    work: Path,
    hours: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Measure what the file lacks of the plan.

    Args:
        plan: this process's part.
        measure: one run.
        settings: what the numbers of a run depend on.
        work: the file.
        hours: after which no further run begins; None lets it end.
        clock: seconds.
    """

    def row_of(run: TrainingRun) -> Row:
        return {**measure(run), "settings": plain(settings(run))}

    measure_missing(plan, rows_of(plan, settings, work), row_of, _line, work, hours, clock)


def _line(run: TrainingRun, row: Row) -> str:
    which = f"{run.task} n={run.shots} seed {run.seed} {run.method} {run.start or run.recipe}".rstrip()
    cost = f"in {row['seconds']:.1f} s" if "seconds" in row else f"as from {row['trained_as']}"
    return f"{which}: {row['accuracy']:.1f} {cost}"
