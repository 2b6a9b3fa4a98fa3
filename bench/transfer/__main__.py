"""The paper's Table 2 (arXiv 2106.04489) on real data: few rows of a new task, here and by other methods.

    python -m bench.transfer [--part 1/2] [--hours 4] [--plan] [--report]
    python -m bench.transfer --suite source --grid [--shots 32] [--seeds 2]

Finished runs stand in --output: repeat the command to resume; several processes may share the work, each
with its own --part. The page is written from what the file holds. With --suite source the source tasks are
learned as if they were new, without their own embeddings (the head has seen them all the same): there, and never on the
targets, --grid tries every recipe of every method and says which is best. The datasets are next to the checkout
(../shared/data) or in --data; where they are missing it says so and stops.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bench.harness.as_a_job import SETTINGS
from bench.harness.command import DATA, add_shared, command_line, command_of, datasets_there
from bench.harness.lines import svg
from bench.harness.report import write
from bench.harness.rows import Row
from bench.transfer.cells import AUTO, BASELINES, HAND_PICKED, OURS, TrainingRun, Wanted, part_of, plan
from bench.transfer.estimate import estimate
from bench.transfer.figures import Results, with_rule
from bench.transfer.material import Cells
from bench.transfer.page import Facts, lines, markdown
from bench.transfer.recipes import RECIPES, Recipe, RecipeKey, grid
from bench.transfer.runs import measure, settings_of
from bench.transfer.sharing import rows_of, run_missing
from onboard.bases import find_base
from onboard.train.settings import TuningSettings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the missing measurements of the part, and write the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    asked = _parser().parse_args(words)
    folder = asked.data / asked.suite
    if not datasets_there(folder, "--data"):
        return 0
    torch.set_num_threads(asked.threads)
    cells = Cells(find_base(asked.base), folder, asked.test_rows)
    asked_for = Wanted(tuple(asked.tasks), tuple(asked.shots), tuple(asked.methods), tuple(asked.starts), asked.seeds)
    runs = [run for run in plan(asked.suite, asked_for) if (folder / run.task).is_dir()]
    if asked.plan:
        print("\n".join(estimate(cells, runs, RECIPES).lines()))
        return 0
    if asked.grid:
        return _grid(cells, runs, asked)
    settings = partial(_settings, cells, asked.suite, RECIPES)
    if not asked.report:
        mine = part_of(runs, *asked.part)
        measured = partial(measure, cells, recipes=RECIPES, finished=partial(rows_of, runs, settings, asked.output))
        run_missing(mine, measured, settings, asked.output, asked.hours)
    rows = rows_of(runs, settings, asked.output)
    if asked.suite == "target":
        _write(command_of("transfer", words), cells, runs, rows, asked)
    else:
        print("\n".join(summary(rows)))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = command_line(__doc__, "transfer", "jsonl")
    add_shared(parser)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with source/ and target/")
    parser.add_argument("--suite", choices=tuple(HAND_PICKED), default="target")
    parser.add_argument("--tasks", nargs="*", default=[], help="only these; likewise the next three")
    parser.add_argument("--shots", nargs="*", type=int, default=[])
    parser.add_argument("--methods", nargs="*", choices=(*OURS, *BASELINES), default=[])
    parser.add_argument("--starts", nargs="*", default=[], help="auto, random, hand or sources")
    parser.add_argument("--seeds", type=int, default=3, help="draws of the rows")
    parser.add_argument("--test-rows", type=int, default=500, help="most of a task")
    parser.add_argument("--hours", type=float, help="after which no further run begins")
    parser.add_argument("--plan", action="store_true", help="say what it would cost, and stop")
    parser.add_argument("--grid", action="store_true", help="try every recipe, on the sources only")
    return parser


def _settings(cells: Cells, suite: str, recipes: Mapping[RecipeKey, Recipe], run: TrainingRun) -> dict[str, Any]:
    """The settings that the numbers of a run depend on."""
    base = cells.base
    made_on = {"base": base.digest} if run.method in OURS else {"backbone": base.backbone_digest}
    return made_on | {"suite": suite, "test_rows": cells.test_rows, "method": settings_of(run, recipes)}


def _grid(cells: Cells, runs: Sequence[TrainingRun], asked: argparse.Namespace) -> int:
    """Every recipe of the methods, of ours from auto, on the sources; the best of each method first.

    Recipes are compared on the runs that all measured recipes of their method have.
    """
    if asked.suite != "source":
        print("recipes are chosen on the sources: --suite source")
        return 2
    mine = list(dict.fromkeys(replace(run, recipe="") for run in runs if run.start in ("", AUTO)))
    for method in dict.fromkeys(run.method for run in mine):
        measured: dict[str, dict[TrainingRun, Row]] = {}
        for recipe in grid(method):
            recipes = {**RECIPES, (method, ""): recipe}
            settings = partial(_settings, cells, asked.suite, recipes)
            of_method = [run for run in mine if run.method == method]
            if not asked.report:
                share = part_of(of_method, *asked.part)
                run_missing(share, partial(measure, cells, recipes=recipes), settings, asked.output, asked.hours)
            rows = rows_of(of_method, settings, asked.output)
            if rows:
                measured[str(recipe)] = rows
        for line in ranked(method, measured, len(grid(method))):
            print(line)
    return 0


def ranked(method: str, measured: Mapping[str, Mapping[TrainingRun, Row]], count: int) -> list[str]:
    """The recipes of a method, the best first, on the runs that all of them have; nothing without a recipe.

    Args:
        method: whose recipes they are.
        measured: rows of each recipe that has any.
        count: recipes that there are.
    """
    if not measured:
        return []
    common = set.intersection(*(set(rows) for rows in measured.values()))
    runs = "1 run" if len(common) == 1 else f"{len(common)} runs"
    text = [f"{method}: {len(measured)} of {count} recipes, on the {runs} that each of them has"]
    if not common:
        return text
    scores = {name: statistics.fmean(rows[run]["accuracy"] for run in common) for name, rows in measured.items()}
    return [*text, *(f"{method:13s} {scores[name]:6.2f}  {name}" for name in sorted(scores, key=lambda n: -scores[n]))]


def summary(rows: Mapping[TrainingRun, Row]) -> list[str]:
    """Mean accuracy by method, start or recipe, and n."""
    by_key: dict[tuple[int, str, str], list[float]] = {}
    for run, row in rows.items():
        by_key.setdefault((run.shots, run.method, run.start or run.recipe), []).append(row["accuracy"])
    return [
        f"n={shots:<5d} {method:13s} {which:10s} {statistics.fmean(of):6.2f}  {len(of):4d} runs"
        for (shots, method, which), of in by_key.items()
    ]


def _write(
    command: str, cells: Cells, runs: Sequence[TrainingRun], rows: Mapping[TrainingRun, Row], asked: argparse.Namespace
) -> None:
    """The page and the plot."""
    tasks = dict.fromkeys(run.task for run in runs)
    hands = {task: source for task, source in HAND_PICKED[asked.suite].items() if task in tasks}
    results = Results(with_rule(rows), hands, tuple(range(asked.seeds)))
    facts = Facts(
        command, f"`{cells.base.name}`", asked.test_rows, RECIPES, asdict(SETTINGS),
        asdict(TuningSettings()), [run for run in runs if run not in rows],
    )  # fmt: skip
    write({}, None, markdown(results, facts), asked.table)
    asked.table.with_suffix(".svg").write_text(svg("Accuracy over labelled rows", lines(results)), encoding="utf-8")
    print(f"{len(rows)} of {len(runs)} runs; {asked.table}")


if __name__ == "__main__":
    sys.exit(main())
