"""A small folder of held-out tasks, and rows of the bench on them without a measurement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.rows import Row
from bench.heldout.plan import Run
from support.tiny_training import FILLERS, write_split

README = """# Tasks

## To train on

| dataset | task | family | source |
|---|---|---|---|
| opinion | is it liked \\| not | sentiment | nowhere |

| kind | what | family |
|---|---|---|

## Held out

| dataset | task | family | source |
|---|---|---|---|
| mood | good or bad | sentiment | nowhere |
| degree | how good | style | nowhere |
| kind | what it is about | topic | nowhere |
"""
MOODS = ("awful", "great")
KINDS = ("film", "plot", "good", "sad")
SHARES = (0.55, 0.3, 0.1, 0.05)  # of the kinds


def make_tasks(folder: Path, rows: int = 120) -> Path:
    """`mood` (two labels), `kind` (four, some rare) and `degree` (numbers); one word tells which."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(README, encoding="utf-8")
    (folder / "heldout.txt").write_text("degree\nkind\nmood\n", encoding="utf-8")
    for split in ("train", "test"):
        write_split(folder / "mood", split, [_row(rng, MOODS[row % 2], f"{split[0]}{row}") for row in range(rows)])
        kinds = [KINDS[place] for place in rng.choice(4, rows, p=SHARES)]
        write_split(folder / "kind", split, [_row(rng, kind, f"{split[0]}{row}") for row, kind in enumerate(kinds)])
        degrees = [_row(rng, MOODS[row % 2], f"{split[0]}{row}") for row in range(rows)]
        numbered = [{**row, "label": f"{place % 2 + place / 1000:.3f}"} for place, row in enumerate(degrees)]
        write_split(folder / "degree", split, numbered)
    return folder


def _row(rng: np.random.Generator, word: str, mark: str) -> dict[str, Any]:
    return {"text": f"{' '.join(rng.permutation([*rng.choice(FILLERS[1:], 2), word, word]))} {mark}", "label": word}


def made(run: Run, accuracy: float, **more: Any) -> Row:
    """A row of a finished run."""
    probe = {"chosen": "sst2@v1", "start": "sst2@v1", "start_family": "sentiment", "best": ["sst2@v1"],
             "in_base": True, "top1": True, "top3": True}  # fmt: skip
    job = {"share": 0.7, "tuning_tried": True, "tuning_kept": False, "weak": False}
    return {
        **asdict(run), "family": "sentiment", "rarest": 0.5, "accuracy": accuracy, "macro_f1": accuracy - 2.0,
        "log_loss": 1.0, "calibration": 0.05, "unanswered": [], "seconds": 10.0, **probe, **job, **more,
    }  # fmt: skip


def made_results(by_arm: dict[str, Sequence[float]], rows: int = 32, **more: Any) -> dict[Run, Row]:
    """Rows of two draws of a task for each accuracy of an arm: `task-0`, `task-1` …"""
    return {
        run: made(run, accuracy, **more)
        for arm, accuracies in by_arm.items()
        for place, accuracy in enumerate(accuracies)
        for run in (Run(f"task-{place}", rows, draw, arm) for draw in (0, 1))
    }
