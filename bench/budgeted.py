"""What the benches of training runs with a small budget have in common: options, the run, the report.

Finished runs stand in a file: a bench that was broken off goes on from it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.machine import describe
from bench.source_folders import read_source
from bench.writing import write
from onboard.bases import find_base
from onboard.bases.curriculum import Batch, Source
from onboard.bases.multitask.loop import Running, Stage, run_stage
from onboard.bases.multitask.loss import Groups, Sampling, ScoresOf, multitask_loss
from onboard.bases.multitask.processes import Processes
from onboard.bases.multitask.recipe import Schedule
from onboard.bases.multitask.validation import HeldOut
from onboard.data.regression import Buckets
from onboard.evaluate import evaluate_classification, evaluate_regression
from onboard.model.initialisation import is_projector
from onboard.statistics.student import half_interval

CHECKOUT = Path(__file__).parents[1]
DATA = CHECKOUT.parent / "shared" / "data"

TEMPERATURE = 10.0  # of the tasks' sampling, as the paper has it
SMOOTHING = 0.1  # of the labels, as the authors have it
SCORED_AT_ONCE = 64
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}

Run = tuple[str, int]  # variant and seed
Row = dict[str, Any]


def datasets_there(folder: Path = DATA) -> bool:
    """Whether they are; where they are not, it is said."""
    if not folder.is_dir():
        print(f"skipped: the datasets are not here ({folder})")
    return folder.is_dir()


@dataclass(frozen=True)
class Budget:
    """What every variant gets: optimiser steps of all its tasks together, rows a step, and the type to compute in."""

    steps: int
    batch: int
    precision: str = "fp32"

    @classmethod
    def asked_for(cls, asked: argparse.Namespace) -> Budget:
        """The budget of a command line."""
        return cls(asked.steps, asked.batch, asked.precision)


@dataclass(frozen=True)
class Method:
    """What is trained, and how it scores.

    Args:
        modules: every weight that gets a gradient.
        scores_of: log-probabilities (B, K) of a batch and the number of its task.
        projector_rate: multiple of the learning rate for the projector of a hypernetwork.
    """

    modules: Mapping[str, nn.Module]
    scores_of: ScoresOf
    projector_rate: float = 1.0

    @property
    def trained(self) -> list[nn.Parameter]:
        """All that gets a gradient."""
        return [parameter for parameters, _ in self.groups for parameter in parameters]

    @property
    def groups(self) -> list[tuple[list[nn.Parameter], float]]:
        """The same by multiples of the learning rate."""
        named = [each for module in self.modules.values() for each in module.named_parameters()]
        projectors = [parameter for name, parameter in named if is_projector(name)]
        others = [parameter for name, parameter in named if not is_projector(name)]
        return [(others, 1.0), (projectors, self.projector_rate)]


def command_line(description: str | None, name: str, *, steps: int, seeds: int) -> argparse.ArgumentParser:
    """The options that such benches have in common.

    Args:
        description: for --help.
        name: of the bench, and of the files that it writes.
        steps, seeds: where nothing else is asked for.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--sources", type=Path, default=DATA / "source")
    parser.add_argument("--seeds", type=int, default=seeds, help="runs of each, one a seed")
    parser.add_argument("--steps", type=int, default=steps, help="optimiser steps of a run, all tasks together")
    parser.add_argument("--batch", type=int, default=16, help="rows a step")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp32")
    parser.add_argument("--processes", type=int, default=2, help="runs at a time, a thread each")
    parser.add_argument("--output", type=Path, default=CHECKOUT / "bench" / "results" / f"{name}.json")
    parser.add_argument("--table", type=Path, default=CHECKOUT / "docs" / "results" / f"{name}.md")
    return parser


def settings_of(asked: argparse.Namespace) -> dict[str, Any]:
    """What the numbers of every such bench depend on."""
    return {
        "base": find_base(asked.base).digest, "budget": asdict(Budget.asked_for(asked)),
        "sources": sorted(path.name for path in asked.sources.iterdir() if path.is_dir()),
    }  # fmt: skip


@lru_cache(1)
def sources_of(folder: Path) -> tuple[Source, ...]:
    """The source tasks of a folder, read once a process."""
    return tuple(read_source(path) for path in sorted(folder.iterdir()) if path.is_dir())


def train(
    method: Method, groups: Groups, budget: Budget, learning_rate: float, seed: int, unsmoothed: Collection[str] = ()
) -> None:
    """Train for the budget: AdamW, linear after a warm-up of a twentieth, one task a step (arXiv 2106.04489, Eq. 2).

    Args:
        method: what is trained.
        groups: tasks with shares of the steps.
        budget: steps and rows.
        learning_rate: at the end of the warm-up.
        seed: of the draws of tasks.
        unsmoothed: names of regressions.
    """
    sampling = Sampling(groups, budget.steps, budget.batch, TEMPERATURE, seed)
    schedule = Schedule(
        steps=budget.steps, batch=budget.batch, learning_rate=learning_rate, warmup_steps=budget.steps // 20
    )
    alone = Processes(0, 1, torch.device("cpu"))
    loss_of = multitask_loss(method.scores_of, sampling, PRECISIONS[budget.precision], alone, SMOOTHING, unsmoothed)
    with TemporaryDirectory() as work:
        stage = Stage("budgeted", schedule, method.modules, method.groups, loss_of, {})
        run_stage(stage, Running(Path(work), lambda _: None, alone))


@torch.no_grad()
def score(method: Method, task: int, held: HeldOut, metric: str) -> float:
    """A metric of held-out rows, times 100."""
    probabilities = np.empty((len(held.ids), held.trie.labels))
    order = np.argsort([len(ids) for ids in held.ids], kind="stable")
    for start in range(0, len(order), SCORED_AT_ONCE):
        chosen = order[start : start + SCORED_AT_ONCE]
        rows = Batch([held.ids[row] for row in chosen], held.trie, np.empty(0, dtype=np.float32))
        probabilities[chosen] = method.scores_of([rows], [task], 0)[0].double().exp().numpy()
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    source = held.source
    if source.low is not None and source.high is not None:
        predicted = probabilities @ np.array(Buckets(source.low, source.high).values)
        return 100.0 * evaluate_regression(held.true, predicted)[metric].value
    return 100.0 * evaluate_classification(held.true, probabilities, metric)[metric].value


def run_all(
    plan: Sequence[Run],
    measure: Callable[[str, int], Row],
    work: Path,
    settings: Mapping[str, Any],
    processes: int = 1,
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
    wanted: dict[str, Any] = json.loads(json.dumps(settings))
    done = {(row["variant"], row["seed"]): row for row in finished(work) if row["settings"] == wanted}
    missing = [run for run in plan if run not in done]
    print(f"{len(plan) - len(missing)} of {len(plan)} runs are in {work}", flush=True)
    for run, row in _measured(missing, measure, processes):
        done[run] = {"variant": run[0], "seed": run[1], **row, "settings": wanted}
        append(work, done[run])
        print(
            f"{sum(each in done for each in plan)}/{len(plan)}  {run[0]}, seed {run[1]}: {row['seconds']} s", flush=True
        )
    return [{key: value for key, value in done[run].items() if key != "settings"} for run in plan]


def finished(work: Path) -> Iterator[Row]:
    """What the file holds; a last line that was cut off by a kill is no run."""
    for line in work.read_text(encoding="utf-8").splitlines() if work.is_file() else []:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def append(work: Path, row: Row) -> None:
    """Write a run behind those that the file holds, on a line of its own whatever a kill has cut off before it."""
    work.parent.mkdir(parents=True, exist_ok=True)
    with work.open("a+b") as file:
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")


def _measured(missing: Sequence[Run], measure: Callable[[str, int], Row], processes: int) -> Iterator[tuple[Run, Row]]:
    if processes == 1:
        for run in missing:
            yield run, _timed(measure, run)
        return
    with ProcessPoolExecutor(
        processes, mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,)
    ) as pool:
        waiting = {pool.submit(_timed, measure, run): run for run in missing}
        for finished in as_completed(waiting):
            yield waiting[finished], finished.result()


def _timed(measure: Callable[[str, int], Row], run: Run) -> Row:
    started = time.monotonic()
    row = measure(*run)
    return {**row, "seconds": round(time.monotonic() - started, 1)}


def write_report(
    command: str,
    asked: argparse.Namespace,
    settings: Mapping[str, Any],
    rows: Sequence[Row],
    markdown: Callable[[dict[str, Any]], str],
) -> None:
    """Write the numbers as JSON and the table that `markdown` makes of them, and print the table.

    Args:
        command: that does the same again.
        asked: the options.
        settings: what the numbers depend on.
        rows: of `run_all`.
        markdown: the page of a document.
    """
    document = {"command": command, "machine": describe(), **settings, "seeds": asked.seeds, "runs": rows}
    table = markdown(document)
    write(document, asked.output, table, asked.table)
    print(table)


def seeds_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Mean and 95% interval over seeds (Student's t); without width for a single seed."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, mean, mean
    half = half_interval(np.array(values))
    return mean, mean - half, mean + half


def shown(values: Sequence[float]) -> str:
    """`71.3 (70.1 to 72.5)`."""
    mean, low, high = seeds_interval(values)
    return f"{mean:.1f} ({low:.1f} to {high:.1f})" if len(values) > 1 else f"{mean:.1f}"
