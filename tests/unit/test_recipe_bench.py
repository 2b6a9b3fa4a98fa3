"""The measurement of recipes: resumed where it stopped, shared by processes, and read as a table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_training import make_sources

from bench import recipes
from bench.recipe_table import BEST, PERMUTED, USED, by_recipe, page, table
from bench.recipes import TRAININGS, Cell, grid, judged, read, run, settings_of
from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.splits import fair_order
from onboard.domain.dataset import Dataset, Example
from onboard.probe import choice as probe_choice
from onboard.probe.choice import ProbeSettings
from onboard.train.crossvalidation import part_rows
from onboard.train.fewshot import FewShotSettings

PLANNED = {"auto": 63, "random": 21}
CELLS = [Cell("sst2", 16, 0, "auto"), Cell("sst2", 16, 0, "random")]


def variant(alpha: float, fold_loss: float, accuracy: float, **more: Any) -> dict[str, Any]:
    found = {"steps": 20, "seeds": 3, "alpha": alpha, "penalty": None, "fold_loss": fold_loss, "fold_accuracy": 0.5}
    return {**found, "test_loss": 1 - accuracy, "test_accuracy": accuracy, **more}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Plays the measurement, and tells what was measured."""
    told: list[Any] = []

    def measure(engine: Any, material: Any, rate: float, pull: float, seed: int) -> list[dict[str, Any]]:
        told.append((rate, pull))
        return [variant(0.0, 0.6, 0.5), variant(0.5, 0.3, 0.7), variant(1.0, 0.4, 0.9)]

    class Prepared:
        chosen, ids = "sst2@v1", (1, 2)

    monkeypatch.setattr(recipes, "prepare", lambda *arguments: Prepared())
    monkeypatch.setattr(recipes, "measure", measure)
    return told


class Named:
    digest = "sha256:0"


def test_what_was_measured_is_not_measured_again_and_a_torn_line_is(tmp_path: Path, measured: list[Any]) -> None:
    first, other = tmp_path / "0.jsonl", tmp_path / "1.jsonl"
    base: Any = Named()
    run(base, base, CELLS[:1], tmp_path, first)
    run(base, base, CELLS, tmp_path, other)
    assert len(measured) == 2 * len(TRAININGS)  # the second process found the first one's cell
    assert len(read(tmp_path)) == 2 * len(TRAININGS)
    first.write_bytes(first.read_bytes()[:-20])
    run(base, base, CELLS, tmp_path, first)
    assert len(measured) == 2 * len(TRAININGS) + 1
    keys = [row["key"] for row in read(tmp_path)]
    assert sorted(keys, key=str) == sorted((c.key(*t, settings_of(base)) for c in CELLS for t in TRAININGS), key=str)


@pytest.mark.parametrize("changed", ["digest", "ProbeSettings", "FewShotSettings"])
def test_what_was_measured_on_another_base_or_with_other_settings_is_measured_again(
    tmp_path: Path, measured: list[Any], monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    base: Any = Named()
    run(base, base, CELLS[:1], tmp_path, tmp_path / "0.jsonl")
    if changed == "digest":
        base.digest = "sha256:1"
    else:
        other: Any = {"ProbeSettings": ProbeSettings(exhaustive=True), "FewShotSettings": FewShotSettings(steps=1)}
        monkeypatch.setattr(recipes, changed, lambda: other[changed])
    run(base, base, CELLS[:1], tmp_path, tmp_path / "0.jsonl")
    assert len(measured) == 2 * len(TRAININGS)
    assert "Measured: 1 of 63 planned cells" in page(read(tmp_path), PLANNED)  # rows of other settings are not mixed


def test_the_race_takes_the_rows_in_the_order_of_a_job(
    tmp_path: Path, fingerprinted_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "DATA", tmp_path)
    make_sources(tmp_path / "source", rows=40)
    taken: list[Any] = []

    def choose(evaluator: Any, offered: Any, order: np.ndarray, settings: Any) -> Any:
        taken.append(order.tolist())
        return probe_choice.choose(evaluator, offered, order, settings)

    monkeypatch.setattr(recipes, "choose", choose)
    folder = tmp_path / "source" / "moods"
    options = ReadOptions(test=folder / "test.jsonl.gz", shots=8, seed=1, suspects=False)
    dataset = read_dataset(folder / "train.jsonl.gz", options).dataset
    recipes.prepare(fingerprinted_base, load_engine(fingerprinted_base, "cpu"), Cell("moods", 8, 1, "auto"))
    assert taken == [list(fair_order(dataset, 1))]


def test_the_parts_of_the_grid_are_the_whole() -> None:
    cells = list(grid(["sst2", "cola"], [16, 32], 3))
    assert len(cells) == len(set(cells)) == 2 * 2 * (3 + 1)
    assert {cell.draw for cell in cells if cell.start == "random"} == {0}


def test_the_chosen_share_is_that_of_least_out_of_fold_loss(tmp_path: Path, measured: list[Any]) -> None:
    base: Any = Named()
    run(base, base, CELLS, tmp_path, tmp_path / "0.jsonl")
    auto = [row for row in read(tmp_path) if row["key"][3] == "auto"]
    (chosen,) = by_recipe(auto)[0.03, 0.0, 20, 3, "chosen", None].values()
    assert chosen["alpha"] == 0.5
    shown = page(read(tmp_path), PLANNED)
    assert "| 0.03 | 0 | 20 | 3 | chosen | none | 70.0 | 70.00 | +20.00 | 0.300 |" in shown
    assert shown.index("| 1 | none |") < shown.index("| chosen | none |")  # the best one first


def test_the_table_shows_the_best_recipes_and_those_that_are_spoken_of_and_marks_the_one_in_use() -> None:
    rate, pull, steps, seeds, *_ = USED
    others = [
        variant(alpha, 0.5, 0.9 - alpha / 10, penalty=penalty, steps=number)
        for number in range(50, 60) for alpha in (0.0, 0.5, 1.0) for penalty in (None, 2.0)
    ]  # fmt: skip
    mine = [variant(alpha, 0.5, 0.1, penalty=penalty, steps=steps, seeds=seeds)
            for alpha in (0.5, 1.0) for penalty in (None, 2.0)]  # fmt: skip
    row = {"key": ["sst2", 32, 0, "auto", rate, pull], "variants": [*others, *mine]}
    head, *lines = table([row], 63).split("\n\n")
    shown = lines[0].splitlines()[2:]
    of = "Measured: 1 of 63 planned cells (sst2; n = 32; 1 draw)."
    assert head == f"{of} The {BEST} best of 86 recipes, and those that the decision speaks of."
    assert all("| 90.0 |" in line for line in shown[:BEST])
    (used,) = [line for line in shown if "**" in line]
    assert "**20** | **3** | **1** | **none** | **10.0** |" in used
    told = [tuple(line.strip("| ").replace("*", "").split(" | ")[2:6]) for line in shown[BEST:]]
    training = str(steps), str(seeds)
    assert {(*training, "0.5", "none"), (*training, "1", "none"), (*training, "1", "2")} <= set(told)
    assert (*training, "0.5", "2") not in told
    assert {("50", "3", "1", "none"), ("59", "3", "1", "none")} <= set(told)
    assert ("50", "3", "1", "2") not in told


def cells_of(tasks: Sequence[str], gains: Sequence[float], draws: int = 2) -> list[dict[str, Any]]:
    """Rows of the service's training, whose gain over its start alternates."""
    rate, pull, steps, seeds, *_ = USED
    more = {"steps": steps, "seeds": seeds}
    return [
        {"key": [task, 32, draw, "auto", rate, pull],
         "variants": [variant(0.0, 0.6, 0.5, **more), variant(1.0, 0.5, 0.5 + gain, **more)]}
        for draw in range(draws) for task, gain in zip(tasks, gains, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "gains", "draws", "told"),
    [(["sst2"], [0.1], 6, "+10.00 points beside its start: too few cells to tell whether training helps."),
     (["sst2", "cola", "rte"], [0.1, 0.2, 0.3], 1, "+20.00 points beside its start: too few cells to tell"),
     (["sst2", "cola"], [0.1, 0.2], 2, "(+10.0 to +20.0) points beside its start: on these cells training helps."),
     (["sst2", "cola"], [-0.1, -0.2], 2, "(-20.0 to -10.0) points beside its start: on these cells training harms."),
     (["sst2", "cola"], [-0.1, 0.2], 2, "these cells do not show that training helps, nor that it harms.")],
)  # fmt: skip
def test_an_interval_wants_two_tasks_and_four_cells_and_the_page_claims_no_more_than_it_says(
    tasks: list[str], gains: list[float], draws: int, told: str
) -> None:
    assert told in table(cells_of(tasks, gains, draws), 63)


def test_the_page_tells_what_was_measured_of_the_plan_and_how_older_rows_were_raced() -> None:
    rows = cells_of(["cola", "sst2"], [0.1, 0.2])
    shown = page(rows, PLANNED)
    assert shown.startswith("# Recipes of few-shot training, measured on source tasks\n")
    assert "Measured: 4 of 63 planned cells (cola, sst2; n = 32; 2 draws)." in shown
    assert PERMUTED in shown
    assert PERMUTED not in page([{**row, "key": [*row["key"], "sha256:0", {}, {}]} for row in rows], PLANNED)


def test_constants_are_judged_out_of_fold_and_fitted_for_the_test() -> None:
    rows = tuple(Example(f"text {index:02d}", None, "ab"[index % 2]) for index in range(24))
    dataset = Dataset("classification", ("a", "b"), rows)
    targets = np.eye(2, dtype=np.float32)[[0, 1] * 12]
    always = np.log(np.tile([0.9, 0.1], (24, 1))) + np.where(targets > 0, 0.5, 0.0)
    always -= np.logaddexp.reduce(always, axis=1, keepdims=True)
    material: Any = type("Held", (), {
        "ids": range(24), "targets": targets, "test_targets": targets, "parted": part_rows(dataset, 0),
    })  # fmt: skip
    plain, mild, strict = judged(material, always, always)
    assert plain["test_accuracy"] == plain["fold_accuracy"] == 0.5
    assert mild["test_accuracy"] == mild["fold_accuracy"] == 1.0
    assert mild["test_loss"] < strict["test_loss"] < plain["test_loss"]
