"""The runs of a plan that a file holds, and those that it lacks, until the time is up."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path

from bench.harness.missing_runs import measure_missing
from bench.harness.rows import Row, finished, plain
from bench.heldout.plan import ArmRun

Settings = Mapping[str, Row]  # what the numbers of an arm depend on, by arm
_FIELDS = tuple(field.name for field in fields(ArmRun))


def runs_of(plan: Sequence[ArmRun], settings: Settings, work: Path) -> dict[ArmRun, Row]:
    """The runs of the plan that the file holds, made with these settings; of several the last."""
    planned, as_read = set(plan), {arm: plain(own) for arm, own in settings.items()}
    by_run = {}
    for row in finished(work):
        run = ArmRun(**{name: row[name] for name in _FIELDS})
        if run in planned and row["settings"] == as_read[run.arm]:
            by_run[run] = row
    return by_run


def run_missing(
    plan: Sequence[ArmRun],
    measure: Callable[[ArmRun], Row],
    settings: Settings,
    work: Path,
    hours: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Measure what the file lacks of the plan.

    Args:
        plan: this process's part.
        measure: one run.
        settings: what the numbers of each arm depend on.
        work: the file.
        hours: after which no further run begins; None lets it end.
        clock: seconds.
    """

    def row_of(run: ArmRun) -> Row:
        return {**asdict(run), **measure(run), "settings": plain(settings[run.arm])}

    measure_missing(plan, runs_of(plan, settings, work), row_of, _line, work, hours, clock)


def _line(run: ArmRun, row: Row) -> str:
    score = row.get("accuracy", row.get("spearman"))
    sampling = "" if run.sampling == "balanced" else f" {run.sampling}"
    which = f"{run.task} n={run.rows} draw {run.draw}{sampling} {run.arm}"
    return f"{which}: {'none' if score is None else f'{score:.1f}'} in {row['seconds']:.1f} s"
