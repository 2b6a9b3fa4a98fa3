"""Small folders of source tasks, held-out tasks and a series, for the benches of what earlier tasks are worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from support.heldout_tasks import make_tasks
from support.tiny_training import FILLERS, make_sources, write_split

PAIRS = {"opinion": ("awful", "great"), "quality": ("sad", "good")}  # of sources among `wide`
SERIES = ("01_films", "02_plots", "03_books")


def make_data(folder: Path) -> Path:
    """`source` (moods; alike asks for numbers), `wide` (opinion, quality, three held out), and a series of three."""
    make_sources(folder / "source")
    make_tasks(folder / "wide")
    for name, words in PAIRS.items():
        for split in ("train", "validation", "test"):
            write_split(folder / "wide" / name, split, _rows(words, f"{name} {split}"))
    for name in SERIES:
        for split in ("train", "test"):
            write_split(folder / "series" / "reviews" / name, split, _rows(("awful", "great"), f"{name} {split}"))
    return folder


def _rows(words: tuple[str, str], mark: str, count: int = 40) -> list[dict[str, Any]]:
    rng = np.random.default_rng(len(mark))
    return [
        {"text": f"{' '.join(rng.choice(FILLERS[1:], 3))} {words[row % 2]} {mark} {row}", "label": words[row % 2]}
        for row in range(count)
    ]
