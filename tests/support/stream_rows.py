"""Small datasets for every task of the stream, and finished steps of a stream without a measurement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.rows import Row, packed
from support.tiny_training import FILLERS, write_split

TELLING = ("great", "awful", "happy", "sad", "poor", "fine")  # a word per label
DATASETS: Mapping[str, tuple[bool, Sequence[str]]] = {
    "target/scitail": (True, ("entailment", "neutral")),
    "target/cb": (True, ("entailment", "contradiction", "neutral")),
    "target/trec": (False, ("human", "location", "number", "entity")),
    "target/boolq": (True, ("yes", "no")),
    "target/imdb": (False, ("positive", "negative")),
    "target/yelp_polarity": (False, ("positive", "negative")),
    "target/paws": (True, ("paraphrase", "not_paraphrase")),
    "source/sst2": (False, ("positive", "negative")),
    "source/cola": (False, ("acceptable", "unacceptable")),
    "source/mrpc": (True, ("paraphrase", "not_paraphrase")),
    "source/qqp": (True, ("duplicate", "not_duplicate")),
    "source/stsb": (True, ("4.6", "0.4", "2.5")),
    "source/mnli": (True, ("entailment", "contradiction", "neutral")),
}


def make_datasets(folder: Path, rows: int = 48) -> Path:
    """Three splits of every dataset; one word of a row tells its label."""
    rng = np.random.default_rng(0)
    for name, (pairs, labels) in DATASETS.items():
        for split in ("train", "validation", "test"):
            mark = f"{name[7:9]}{split[:2]}"
            write_split(folder / name, split, [_row(rng, pairs, labels, f"{mark}{row}", row) for row in range(rows)])
    return folder


def _row(rng: np.random.Generator, pairs: bool, labels: Sequence[str], mark: str, row: int) -> dict[str, Any]:
    place = row % len(labels)
    text = f"{' '.join(rng.permutation([*rng.choice(FILLERS, 2), TELLING[place]]))} {mark}"
    if pairs:
        return {"text_a": f"the {mark}", "text_b": text, "label": labels[place]}
    return {"text": text, "label": labels[place]}


def made_step(accuracies: Sequence[float], *, start: float = 0.5, rows: int = 40, **more: Any) -> Row:
    """A step after which each task so far has this share of right answers; the start of the last one has `start`."""
    correct = [packed(np.arange(rows) < round(share * rows)) for share in accuracies]
    begins = packed(np.arange(rows) < round(start * rows))
    chance = packed(np.arange(rows) < rows // 4)
    return {"correct": correct, "rows": [rows] * len(correct), "start": begins, "random": chance, "share": 1.0,
            "seconds": {"train": 2.0, "test": 1.0}, "unchanged": len(correct) - 1, "parameters": 1000, "task": "topic",
            **more}  # fmt: skip
