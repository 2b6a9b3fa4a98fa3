"""A source task: labelled rows that a base is trained on and measured by."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from onboard.data.regression import BUCKETS, Buckets
from onboard.data.verbaliser import verbalise
from onboard.domain.dataset import Example, Kind, Label, class_indices, in_canonical_order
from onboard.errors import NotFoundError


@dataclass(frozen=True)
class Source:
    """A source task as it is shipped with the base.

    Args:
        name: the folder's name.
        kind: classification or regression.
        labels: class labels in canonical order; empty for regression.
        words: word per label, or per bucket.
        low, high: range of a regression, else None.
        train: its training rows.
        validation: rows for choosing; never in a batch.
        test: rows that the finished base is measured on.
        metric: the one that counts in choosing; empty where nobody chooses by it.
    """

    name: str
    kind: Kind
    labels: tuple[Label, ...]
    words: tuple[str, ...]
    low: float | None
    high: float | None
    train: tuple[Example, ...]
    validation: tuple[Example, ...] = ()
    test: tuple[Example, ...] = ()
    metric: str = ""

    @property
    def pairs(self) -> bool:
        """Whether its rows are pairs of texts."""
        return any(row.text_b is not None for row in self.train[:1])

    def values(self) -> np.ndarray:
        """Class index (N,) of each training row, or the value of a regression (N,) float32."""
        if self.kind == "regression":
            return np.array([float(row.label) for row in self.train], dtype=np.float32)
        return np.array(class_indices(self.labels, self.train))

    def targets(self) -> np.ndarray:
        """One distribution over labels or buckets per training row (N, K), float32."""
        if self.low is not None and self.high is not None:
            buckets = Buckets(self.low, self.high)
            return np.array([buckets.soft_target(float(value)) for value in self.values()], dtype=np.float32)
        one_hot: np.ndarray = np.eye(len(self.labels), dtype=np.float32)[self.values()]
        return one_hot


def read_source(folder: Path) -> Source:
    """A source from its folder; numbers that are no integers and of more than 20 kinds make it a regression.

    Raises:
        NotFoundError: the train or the validation split is missing.
    """
    rows, validation = _read_split(folder, "train"), _read_split(folder, "validation")
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
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return tuple(Example(row.get("text", row.get("text_a")), row.get("text_b"), row["label"]) for row in rows)


def _are_scores(labels: Sequence[Label]) -> bool:
    try:
        values = {float(label) for label in labels}
    except ValueError:
        return False
    return len(values) >= BUCKETS and any(value % 1 for value in values)
