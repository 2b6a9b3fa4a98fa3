"""The runs of a plan, each a variant and a seed, in as many processes as are requested; and their report."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from bench.harness.report import made_by, report
from bench.harness.rows import Row, Rows

Run = tuple[str, int]  # variant and seed


def run_all(
    plan: Sequence[Run], measure: Callable[[str, int], Row], work: Path, settings: Mapping[str, Any], processes: int = 1
) -> list[Row]:
    """Measure every run of the plan that the work file does not hold; a line is appended for each.

    Args:
        plan: variants and seeds.
        measure: one run; with several processes it must be picklable.
        work: JSON lines, of these and of other settings.
        settings: what the numbers depend on, JSON-compatible.
        processes: runs at a time, a thread each; with one, torch's own number of threads.

    Returns:
        The rows of the plan, in its order.
    """
    rows = Rows(work, settings)
    done = {(row["variant"], row["seed"]): row for row in rows}
    missing = [run for run in plan if run not in done]
    print(f"{len(plan) - len(missing)} of {len(plan)} runs are in {work}", flush=True)
    for run, row in _measured(missing, measure, processes):
        done[run] = rows.add({"variant": run[0], "seed": run[1], **row})
        count = sum(planned in done for planned in plan)
        print(f"{count}/{len(plan)}  {run[0]}, seed {run[1]}: {row['seconds']} s", flush=True)
    return [{key: value for key, value in done[run].items() if key != "settings"} for run in plan]


def report_runs(
    command: str,
    asked: argparse.Namespace,
    settings: Mapping[str, Any],
    rows: Sequence[Row],
    page: Callable[[dict[str, Any]], str],
) -> int:
    """Write the numbers and the page that is made of them, and print the page; the exit code.

    Args:
        command: that does the same again.
        asked: the options.
        settings: what the numbers depend on.
        rows: of `run_all`.
        page: of a document.
    """
    return report({**made_by(command), **settings, "seeds": asked.seeds, "runs": rows}, asked, page)


def _measured(missing: Sequence[Run], measure: Callable[[str, int], Row], processes: int) -> Iterator[tuple[Run, Row]]:
    if processes == 1:
        for run in missing:
            yield run, _timed(measure, run)
        return
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        waiting = {pool.submit(_timed, measure, run): run for run in missing}
        for ended in as_completed(waiting):
            yield waiting[ended], ended.result()


def _timed(measure: Callable[[str, int], Row], run: Run) -> Row:
    started = time.monotonic()
    row = measure(*run)
    return {**row, "seconds": round(time.monotonic() - started, 1)}
