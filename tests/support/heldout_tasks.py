"""A small folder of held-out tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

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
