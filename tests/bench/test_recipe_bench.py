"""The measurement of recipes: resumed where it stopped, shared by processes, and read as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.tiny_training import make_sources

from bench.harness.intervals import interval
from bench.recipes import __main__ as recipes
from bench.recipes.__main__ import RIVALS, UNSEEN, Cell, grid, measure, run, settings_of
from bench.recipes.page import OWN_TRAINING, bearable, page
from onboard.bases import Base
from onboard.domain.dataset import Dataset, Example

CELLS = [Cell("sst2", 16, 0, 20, 8, 0.1), Cell("sst2", 16, 0, 20, 8, 0.2)]
SHARES = ("0", "0.125", "0.25", "0.5", "1")


def by_share(losses: Sequence[float], accuracies: Sequence[float]) -> dict[str, dict[str, Any]]:
    """Of the start, and of the shares from the least on."""
    return {
        share: {"fold_losses": [loss, loss], "fold_accuracy": 0.5, "test_loss": loss, "test_accuracy": accuracy,
                "one_order": accuracy - 0.01}
        for share, loss, accuracy in zip(SHARES, losses, accuracies, strict=True)
    }  # fmt: skip


def row(task: str, draw: int = 0, gain: float = 0.2, losses: Sequence[float] = (0.9, 0.8, 0.7, 0.6, 0.5)) -> Any:
    cell = Cell(task, 32, draw, *OWN_TRAINING)
    accuracies = [0.5 + gain * step / 4 for step in range(5)]
    return {"cell": asdict(cell), "chosen": "sst2", "rows": 32, "by_share": by_share(losses, accuracies)}


def test_what_was_measured_is_not_measured_again_and_a_torn_line_is(
    tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[Cell] = []
    played = {"chosen": "sst2", "rows": 16, "by_share": by_share([0.5] * 5, [0.5] * 5)}
    monkeypatch.setattr(recipes, "measure", lambda _, cell: measured.append(cell) or played)
    output = tmp_path / "rows.jsonl"
    run(tiny_base, CELLS[:1], output)
    run(tiny_base, CELLS, output)
    assert measured == CELLS
    output.write_bytes(output.read_bytes()[:-20])
    run(tiny_base, CELLS, output)
    assert measured == [*CELLS, CELLS[1]]
    monkeypatch.setattr(recipes, "TEST_ROWS", 7)
    run(tiny_base, CELLS[:1], output)
    assert measured[-1] == CELLS[0]  # other settings


def test_the_grid_has_every_training_of_every_task_and_first_the_first_draws() -> None:
    cells = list(grid(["sst2", "answer"], [16, 32], 3, [OWN_TRAINING, *RIVALS]))
    assert len(cells) == len(set(cells)) == 2 * 2 * 3 * (1 + len(RIVALS))
    assert [cell.draw for cell in cells] == sorted(cell.draw for cell in cells)
    assert OWN_TRAINING not in RIVALS
    assert "opinion" not in UNSEEN


def test_a_training_tells_what_every_share_of_the_way_gives(
    fingerprinted_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_sources(tmp_path / "source", rows=40)
    monkeypatch.setattr(recipes, "DATA", tmp_path)
    monkeypatch.setattr(recipes, "KNOWN", ("moods",))
    measured = measure(fingerprinted_base, Cell("moods", 12, 0, 4, 8, 0.2))
    assert set(measured["by_share"]) == set(SHARES)
    assert measured["rows"] == 12
    losses = [measured["by_share"][share]["fold_losses"] for share in SHARES]
    assert [len(fold_losses) for fold_losses in losses] == [12] * len(SHARES)
    assert len({sum(fold_losses) for fold_losses in losses}) == len(SHARES)
    json.dumps(measured, allow_nan=False)


def test_unseen_kinds_are_made_of_rows_that_the_base_was_not_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    rows = tuple(Example(f"text {number}", None, "ab"[number % 2]) for number in range(80))
    monkeypatch.setattr(recipes, "read_rows", lambda folder, split: asked.append((folder, split)))
    monkeypatch.setattr(recipes, "make", lambda *_: Dataset("classification", ("a", "b"), rows, test=rows))
    monkeypatch.setattr(recipes, "DATA", tmp_path)
    assert len(recipes.dataset_of(Cell("answer", 32, 1, 20, 8, 0.1)).train) == 32
    assert asked == [(tmp_path / "source", "validation")]


def test_the_rows_that_were_predicted_without_themselves_choose_the_share_as_in_the_service() -> None:
    assert bearable(row("sst2")) == "1"
    assert bearable(row("sst2", losses=(0.5, 0.49, 0.48, 0.495, 0.6))) == "0.5"
    assert bearable(row("sst2", losses=(0.5, 0.6, 0.7, 0.8, 0.9))) == "0.125"


def test_the_page_parts_known_kinds_from_unseen_ones_and_marks_what_the_service_does() -> None:
    rows = [row("sst2"), row("cola", gain=0.1), row("answer", gain=0.4, losses=(0.5, 0.6, 0.7, 0.8, 0.9))]
    shown = page(rows, 44, "python -m bench.recipes", UNSEEN)
    assert "Measured: 3 of 44 trainings (sst2, cola, answer)." in shown
    plain, bold = ([mark.format(f"{number:g}") for number in OWN_TRAINING] for mark in ("{}", "**{}**"))
    assert f"| {' | '.join(plain)} | 1 | 65.0 | +15.0 | 0.500 | 90.0 | +40.0 | 0.900 |" in shown
    assert f"| {' | '.join(bold)} | **chosen** | **65.0** | **+15.0** | **0.500** | **60.0** |" in shown
    assert "The mean of 2 orders is +1.00 points beside one." in shown
    assert "| sst2 | 1 | 50.0 | 70.0 | 70.0 | 1 |" in shown
    assert "| answer (unseen) | 1 | 50.0 | 60.0 | 90.0 | 0.125 |" in shown
    assert "Measured: 0 of 44" in page([], 44, "python -m bench.recipes", UNSEEN)


def test_an_interval_wants_two_tasks_and_four_cells() -> None:
    assert interval(np.array([1.0] * 6), ["sst2"] * 6) is None
    assert interval(np.array([1.0, 2.0, 3.0]), ["sst2", "cola", "rte"]) is None
    assert interval(np.array([1.0, 2.0] * 2), ["sst2", "cola"] * 2) == (1.0, 2.0)


def test_settings_of_another_base_are_others(tiny_base: Base, fingerprinted_base: Base) -> None:
    assert settings_of(tiny_base) != settings_of(fingerprinted_base)
    assert settings_of(tiny_base) == json.loads(json.dumps(settings_of(tiny_base)))
