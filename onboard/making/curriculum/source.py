"""A source task: labeled rows that a base is trained on and evaluated with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from onboard.bases import LabelledTask
from onboard.data.regression import Buckets
from onboard.domain.dataset import Example, class_indices


@dataclass(frozen=True)
class About:
    """Information about a source from a recipe, all optional.

    Args:
        title: the task in a few words.
        family: kind of the task.
        licence: license of the rows, as their publisher states it.
        publisher: publisher of the rows.
        weight: factor on the number of steps that its rows give it.
    """

    title: str = ""
    family: str = ""
    licence: str = ""
    publisher: str = ""
    weight: float = 1.0

    def to_json(self) -> dict[str, str]:
        """Return the texts for base.json, without empty ones."""
        texts = {"title": self.title, "family": self.family, "licence": self.licence, "publisher": self.publisher}
        return {name: text for name, text in texts.items() if text}


NOTHING_TOLD: Final = About()


@dataclass(frozen=True)
class Source(LabelledTask):
    """A source task with its rows.

    Args:
        train: its training rows.
        validation: rows for choosing; never in a batch.
        test: rows that the finished base is evaluated on.
        metric: the metric for choosing; empty if the source is not used for that.
        about: further information.
    """

    train: tuple[Example, ...]
    validation: tuple[Example, ...] = ()
    test: tuple[Example, ...] = ()
    metric: str = ""
    about: About = NOTHING_TOLD

    def to_json(self) -> dict[str, Any]:
        """Return the entry for base.json."""
        return {**super().to_json(), **self.about.to_json()}

    @property
    def pairs(self) -> bool:
        """Whether its rows are pairs of texts."""
        return any(row.text_b is not None for row in self.train[:1])

    def values(self) -> np.ndarray:
        """Return the class index (N,) of each training row, or the value of a regression (N,) float32."""
        if self.kind == "regression":
            return np.array([float(row.label) for row in self.train], dtype=np.float32)
        return np.array(class_indices(self.labels, self.train))

    def targets(self) -> np.ndarray:
        """Return a distribution over labels or buckets per training row (N, K), float32."""
        if self.low is not None and self.high is not None:
            buckets = Buckets(self.low, self.high)
            return np.array([buckets.soft_target(float(value)) for value in self.values()], dtype=np.float32)
        one_hot: np.ndarray = np.eye(len(self.labels), dtype=np.float32)[self.values()]
        return one_hot
