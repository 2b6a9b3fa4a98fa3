"""A source task: labelled rows that a base is trained on and measured by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from onboard.bases import LabelledTask
from onboard.data.regression import Buckets
from onboard.domain.dataset import Example, class_indices


@dataclass(frozen=True)
class About:
    """What a recipe tells of a source beside where its rows are; empty where nobody tells it.

    Args:
        title: what the task asks, in a few words.
        family: kind of the task.
        licence: of the rows, as their publisher states it.
        publisher: who publishes the rows.
        weight: times as many steps as its rows alone would give it.
    """

    title: str = ""
    family: str = ""
    licence: str = ""
    publisher: str = ""
    weight: float = 1.0

    def to_json(self) -> dict[str, str]:
        """What people read of it in a base, without what is empty."""
        texts = {"title": self.title, "family": self.family, "licence": self.licence, "publisher": self.publisher}
        return {name: text for name, text in texts.items() if text}


NOTHING_TOLD: Final = About()


@dataclass(frozen=True)
class Source(LabelledTask):
    """A source task with its rows.

    Args:
        train: its training rows.
        validation: rows for choosing; never in a batch.
        test: rows that the finished base is measured on.
        metric: the one that counts in choosing; empty where nobody chooses by it.
        about: what else is told of it.
    """

    train: tuple[Example, ...]
    validation: tuple[Example, ...] = ()
    test: tuple[Example, ...] = ()
    metric: str = ""
    about: About = NOTHING_TOLD

    def to_json(self) -> dict[str, Any]:
        """For base.json, under its name."""
        return {**super().to_json(), **self.about.to_json()}

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
