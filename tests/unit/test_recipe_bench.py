"""The measurement of recipes: resumed where it stopped, shared by processes, and read as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import recipes
from bench.recipe_table import BEST, USED, by_recipe, page, table
from bench.recipes import TRAININGS, Cell, grid, judged, read, run
from onboard.domain.dataset import Dataset, Example
from onboard.train.crossvalidation import part_rows

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
    assert {tuple(row["key"]) for row in read(tmp_path)} == {c.key(*t) for c in CELLS for t in TRAININGS}


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
    shown = page(read(tmp_path))
    assert "| 0.03 | 0 | 20 | 3 | chosen | none | 70.0 | 70.00 | +20.00 (+20.0 to +20.0) | 0.300 |" in shown
    assert shown.index("| 1 | none |") < shown.index("| chosen | none |")  # the best one first


def test_the_table_shows_the_best_recipes_and_those_that_are_spoken_of_and_marks_the_one_in_use() -> None:
    rate, pull, steps, seeds, *_ = USED
    others = [
        variant(alpha, 0.5, 0.9 - alpha / 10, penalty=penalty, steps=number)
        for number in range(50, 60) for alpha in (0.0, 0.5, 1.0) for penalty in (None, 2.0)
    ]  # fmt: skip
    mine = [variant(alpha, 0.5, 0.1, penalty=penalty, steps=steps, seeds=seeds)
            for alpha in (0.5, 1.0) for penalty in (None, 2.0)]  # fmt: skip
    head, *lines = table([{"key": ["sst2", 32, 0, "auto", rate, pull], "variants": [*others, *mine]}]).split("\n\n")
    shown = lines[0].splitlines()[2:]
    assert head == f"1 cell of sst2. The {BEST} best of 86 recipes, and those that the decision speaks of."
    assert all("| 90.0 |" in line for line in shown[:BEST])
    (used,) = [line for line in shown if "**" in line]
    assert "**20** | **3** | **1** | **none** | **10.0** |" in used
    told = [tuple(line.strip("| ").replace("*", "").split(" | ")[2:6]) for line in shown[BEST:]]
    training = str(steps), str(seeds)
    assert {(*training, "0.5", "none"), (*training, "1", "none"), (*training, "1", "2")} <= set(told)
    assert (*training, "0.5", "2") not in told
    assert {("50", "3", "1", "none"), ("59", "3", "1", "none")} <= set(told)
    assert ("50", "3", "1", "2") not in told


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
