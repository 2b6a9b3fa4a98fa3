"""A source task: labelled rows that a base is trained on and measured by."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onboard.bases import LabelledTask
from onboard.data.regression import Buckets
from onboard.domain.dataset import Example, class_indices


@dataclass(frozen=True)
class Source(LabelledTask):
    """A source task with its rows.

    Args:
        train: its training rows.
        validation: rows for choosing; never in a batch.
        test: rows that the finished base is measured on.
        metric: the one that counts in choosing; empty where nobody chooses by it.
    """

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
