"""Labeled texts of one task, in the form that the model uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onboard.model.scoring import LabelTrie


@dataclass(frozen=True)
class Batch:
    """One batch of one task.

    Args:
        ids: token ids of each text (B).
        targets: distribution over the labels (B, K), float32.
    """

    ids: list[Sequence[int]]
    trie: LabelTrie
    targets: np.ndarray


@dataclass(frozen=True)
class LabelledRows:
    """Rows of one task, for training or evaluation.

    Args:
        ids: token ids of each row (n).
        targets: distribution over labels or buckets of each row (n, K), times the row's weight.
    """

    ids: Sequence[Sequence[int]]
    targets: np.ndarray

    def at(self, places: Sequence[int] | np.ndarray) -> LabelledRows:
        """Return the rows at some indices, in this order."""
        return LabelledRows([self.ids[place] for place in places], self.targets[places])


@dataclass(frozen=True)
class TrainingSet:
    """The training data of one task.

    Args:
        trie: of the task's K label words.
    """

    rows: LabelledRows
    trie: LabelTrie
