"""The cost of a plan, from one small training of each method: seconds per token that is trained on, or tested."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from bench.harness.as_if_new import drawn_tests
from bench.transfer.cells import AUTO, TrainingRun
from bench.transfer.material import Cells, read
from bench.transfer.recipes import Recipe, RecipeKey, rows_a_step
from bench.transfer.runs import embedding_passes, measure, tuning_passes
from onboard.bases.load import load_engine
from onboard.data.limits import PROBE_ROWS

TRIAL_SHOTS, TRIAL_TEST_ROWS, TRIAL_STEPS = 16, 32, 8
TEST_COST: Final = 1 / 3  # of a row that is tested, in rows that are trained on


@dataclass(frozen=True)
class Estimate:
    """Seconds of one core.

    Args:
        by_run: of each run.
    """

    by_run: Mapping[TrainingRun, float]

    @property
    def hours(self) -> float:
        """Of all runs together, on one core."""
        return sum(self.by_run.values()) / 3600

    def lines(self) -> list[str]:
        """Runs and hours by method and n."""
        keys = dict.fromkeys((run.method, run.shots) for run in self.by_run)
        text = []
        for method, shots in keys:
            taken = [cost for run, cost in self.by_run.items() if (run.method, run.shots) == (method, shots)]
            text.append(f"{method:13s} n={shots:<5d} {len(taken):5d} runs  {sum(taken) / 3600:6.2f} core hours")
        return [*text, f"{'all':13s} {'':7s} {len(self.by_run):5d} runs  {self.hours:6.2f} core hours"]


def estimate(cells: Cells, plan: Sequence[TrainingRun], recipes: Mapping[RecipeKey, Recipe]) -> Estimate:
    """Try each method once on the plan's first task, and scale by rows and tokens."""
    tokens = {task: mean_tokens(cells, task) for task in dict.fromkeys(run.task for run in plan)}
    trial = Cells(cells.base, cells.folder, TRIAL_TEST_ROWS)
    short = {key: replace(recipe, steps=TRIAL_STEPS) for key, recipe in recipes.items()}
    rates: dict[str, float] = {}
    for run in {run.method: run for run in reversed(plan)}.values():
        first = TrainingRun(plan[0].task, TRIAL_SHOTS, 0, run.method, "random" if run.start else "", run.recipe)
        measure(
            trial, first, short
        )  # warms up everything that is loaded once; then a cell that has trained nothing yet
        row = measure(Cells(cells.base, cells.folder, TRIAL_TEST_ROWS), first, short)
        units = (row["row_passes"] + TEST_COST * row["rows"]) * tokens[first.task]
        rates[run.method] = row["seconds"] / units
    probe = _probe_rate(trial, plan, tokens)
    return Estimate({run: _seconds(cells, run, recipes, rates, probe, tokens) for run in plan})


def _seconds(
    cells: Cells,
    run: TrainingRun,
    recipes: Mapping[RecipeKey, Recipe],
    rates: Mapping[str, float],
    probe: float,
    tokens: Mapping[str, float],
) -> float:
    trained = 0 if run.method == "tfidf" else row_passes(run, recipes)
    units = (trained + TEST_COST * cells.test_rows) * tokens[run.task]
    probed = probe * min(run.shots, PROBE_ROWS) * tokens[run.task] if run.start == AUTO else 0.0
    return rates[run.method] * units + probed


def row_passes(run: TrainingRun, recipes: Mapping[RecipeKey, Recipe]) -> float:
    """Rows that the run trains on, each time it does; from auto a tuning goes on from the run before."""
    if run.method == "embedding":
        return embedding_passes(run.shots)
    if run.method == "hypernetwork":
        return tuning_passes(run.shots) + (embedding_passes(run.shots) if run.start != AUTO else 0)
    recipe = recipes[run.method, run.recipe]
    return recipe.steps_for(run.shots) * rows_a_step(run.shots, recipe.batch)


def mean_tokens(cells: Cells, task: str) -> float:
    """Tokens of a test row on average."""
    rows = drawn_tests(read(cells.folder / task), 100)
    encoder = load_engine(cells.base, "cpu").encoder
    return float(np.mean([len(ids) for ids in encoder.encode([(row.text_a, row.text_b) for row in rows])]))


def _probe_rate(trial: Cells, plan: Sequence[TrainingRun], tokens: Mapping[str, float]) -> float:
    """Seconds of a choice per labelled row and token; 0 where none is made."""
    if not any(run.start == AUTO for run in plan):
        return 0.0
    cell = Cells(trial.base, trial.folder, 1).of(TrainingRun(plan[0].task, TRIAL_SHOTS, 0, "embedding", AUTO))
    begun = time.monotonic()
    cell.start(AUTO)
    return (time.monotonic() - begun) / (TRIAL_SHOTS * tokens[plan[0].task])
