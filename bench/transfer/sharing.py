"""Finished rows in a file that several processes append to, each its own part of the plan, until the time is up."""

from __future__ import annotations

import json
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.budgeted import append, finished
from bench.transfer.cells import Run
from bench.transfer.runs import Row

Settings = Callable[[Run], Mapping[str, Any]]


def part(words: str) -> tuple[int, int]:
    """The `--part` of a command line: "1/2" is the first of two. Raises ArgumentTypeError for anything else."""
    index, _, count = words.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        raise ArgumentTypeError(f"{words!r} is no part; the first of two is 1/2")
    return int(index), int(count)


def rows_of(plan: Sequence[Run], settings: Settings, work: Path) -> dict[Run, Row]:
    """The runs of the plan that the file holds, made with these settings; of several the first."""
    planned = set(plan)
    by_run: dict[Run, Row] = {}
    for row in finished(work):
        recipe = row.get("recipe", "")  # recipes of older rows had no names
        run = Run(row["task"], row["shots"], row["seed"], row["method"], row["start"], recipe)
        if run in planned and run not in by_run and row["settings"] == plain(settings(run)):
            by_run[run] = row
    return by_run


def run_missing(
    plan: Sequence[Run],
    measure: Callable[[Run], Row],
    settings: Settings,
    work: Path,
    hours: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Measure what the file lacks, and append each row as soon as it is there.

    Args:
        plan: this process's part.
        measure: one run.
        settings: what the numbers of a run depend on.
        work: the file.
        hours: after which no further run begins; None lets it end.
        clock: seconds.
    """
    there = rows_of(plan, settings, work)
    missing = [run for run in plan if run not in there]
    print(f"{len(plan) - len(missing)} of {len(plan)} runs are in {work}", flush=True)
    begun = clock()
    for number, run in enumerate(missing, 1):
        if hours is not None and clock() - begun >= 3600 * hours:
            print(f"the time is up: {len(missing) - number + 1} runs are left; the same command goes on", flush=True)
            return
        row = {**measure(run), "settings": plain(settings(run))}
        append(work, row)
        which = f"{run.task} n={run.shots} seed {run.seed} {run.method} {run.start or run.recipe}".rstrip()
        cost = f"in {row['seconds']:.1f} s" if "seconds" in row else f"as from {row['trained_as']}"
        print(f"{number}/{len(missing)}  {which}: {row['accuracy']:.1f} {cost}", flush=True)


def plain(settings: Mapping[str, Any]) -> Any:
    """As it will be read again."""
    return json.loads(json.dumps(settings))
