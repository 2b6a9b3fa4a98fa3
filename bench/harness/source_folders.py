"""Source tasks from folders, with two splits and without a recipe, as the benches train on them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from onboard.data.regression import BUCKETS, Buckets
from onboard.data.verbaliser import verbalise
from onboard.domain.dataset import Example, Label, in_canonical_order
from onboard.errors import NotFoundError
from onboard.making.curriculum import Source

SUITES: Final = ("source", "wide")  # the folders that `mini` has its sources from


def source_places(data: Path) -> dict[str, Path]:
    """The folder of every task of these suites, by its name."""
    return {folder.name: folder for suite in SUITES for folder in (data / suite).iterdir() if folder.is_dir()}


def read_source(folder: Path) -> Source:
    """A source from its folder; numbers that are not integers and of more than 20 kinds make it a regression.

    Raises:
        NotFoundError: the train or the validation split is missing.
    """
    rows, validation = (_read_split(folder, split) for split in ("train", "validation"))
    labels = in_canonical_order(row.label for row in rows)
    if _are_scores(labels):
        values = [float(row.label) for row in rows]
        low, high = min(values), max(values)
        return Source(folder.name, "regression", (), Buckets(low, high).words, low, high, rows, validation)
    return Source(folder.name, "classification", labels, verbalise(labels), None, None, rows, validation)


def _read_split(folder: Path, split: str) -> tuple[Example, ...]:
    path = folder / f"{split}.jsonl.gz"
    if not path.is_file():
        raise NotFoundError(
            f"source {folder.name} has no {split} split ({path})", f"put {split}.jsonl.gz into {folder}"
        )
    return tuple(read_rows(path))


def read_rows(path: Path) -> list[Example]:
    """The rows of a file of one split."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [Example(row.get("text", row.get("text_a")), row.get("text_b"), row["label"]) for row in rows]


def _are_scores(labels: Sequence[Label]) -> bool:
    try:
        values = {float(label) for label in labels}
    except ValueError:
        return False
    return len(values) >= BUCKETS and any(value % 1 for value in values)
