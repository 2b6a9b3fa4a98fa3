"""Rows as indices into shared texts, drawn by class with similar lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from onboard.making.curriculum.batch import rows_within_budget
from onboard.making.curriculum.texts import TextStore
from onboard.model.batch import Batch
from onboard.model.scoring import LabelTrie

_NARROWEST = 16  # rows of a class that one batch draws from


class Members:
    """Indices of each class, sorted by length. A draw takes rows of every class from the same quantile of lengths.

    So the rows of a batch have similar lengths, unless length depends on the class.

    Args:
        classes: class of each row (N,), -1 for rows without a class.
        lengths: tokens of each row (N,).
        count: number of classes K.
    """

    def __init__(self, classes: np.ndarray, lengths: np.ndarray, count: int) -> None:
        order = np.argsort(lengths, kind="stable").astype(np.int32)
        self._of = [order[classes[order] == label] for label in range(count)]
        self.sizes = np.array([len(rows) for rows in self._of])

    def draw(
        self, rng: np.random.Generator, chosen: Sequence[int], quotas: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw `quotas[i]` rows of class `chosen[i]`. Returns shuffled rows and their index in `chosen`, each (n,)."""
        quantile = rng.random()
        rows, places = [], []
        for place, (label, quota) in enumerate(zip(chosen, quotas.tolist(), strict=True)):
            members = self._of[label]
            window = min(len(members), max(_NARROWEST, 2 * quota))
            start = int(quantile * (len(members) - window + 1))
            rows.append(members[start : start + window][rng.choice(window, quota, replace=quota > window)])
            places.append(np.full(quota, place))
        order = rng.permutation(int(quotas.sum()))
        return np.concatenate(rows)[order], np.concatenate(places)[order]


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows that tasks with several wordings share.

    Args:
        store: contains the texts.
        left: first text of each row (N,).
        right: second text (N,), None for single texts.
        classes: label of each row (N,).
        count: number of labels K.
        balance: classes are drawn in proportion to size ** balance: 1 keeps their shares, 0 makes them equal.
        scale: soft targets (N, K) instead of classes for a regression, else None.
    """

    store: TextStore
    left: np.ndarray
    right: np.ndarray | None
    classes: np.ndarray
    count: int
    balance: float = 0.25
    scale: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.left)

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens of each row (N,), after truncation."""
        lengths = self.store.lengths[self.left] + 1
        if self.right is not None:
            lengths = lengths + self.store.separator_length + self.store.lengths[self.right]
        cut: np.ndarray = np.minimum(lengths, self.store.limit)
        return cut

    @cached_property
    def _members(self) -> Members:
        if self.scale is not None:
            return Members(np.zeros(len(self), dtype=np.int64), self.lengths, 1)
        return Members(self.classes, self.lengths, self.count)

    @cached_property
    def _shares(self) -> np.ndarray:
        weights = self._members.sizes.astype(np.float64) ** self.balance * (self._members.sizes > 0)
        shares: np.ndarray = weights / weights.sum()
        return shares

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw the rows (n,) of one batch, within its token budget."""
        size = min(size, len(self))
        quotas = rng.multinomial(size, self._shares)
        labels = np.flatnonzero(quotas)
        rows, _ = self._members.draw(rng, labels.tolist(), quotas[labels])
        return rows[: rows_within_budget(self.lengths[rows], size)]

    def targets(self, rows: np.ndarray) -> np.ndarray:
        """Return targets (n, K) float32."""
        if self.scale is not None:
            scaled: np.ndarray = self.scale[rows]
            return scaled
        one_hot: np.ndarray = np.eye(self.count, dtype=np.float32)[self.classes[rows]]
        return one_hot

    def ids(self, row: int) -> list[int]:
        """Return the token ids of one row."""
        return self.store.row([self.left[row]], None if self.right is None else [self.right[row]])


class RowsTask:
    """Rows with one set of label words.

    Args:
        rows: may be shared with other wordings.
    """

    def __init__(self, name: str, words: Sequence[str], rows: SharedRows, trie: LabelTrie, seed: int) -> None:
        self.name, self.words, self.rows = name, tuple(words), len(rows)
        self.drawn_from = rows
        self._trie, self._seed = trie, seed

    def batch(self, step: int, size: int) -> Batch:
        """Return the batch of a step."""
        rows = self.drawn_from.draw(np.random.default_rng((self._seed, step)), size)
        ids = [self.drawn_from.ids(row) for row in rows.tolist()]
        return Batch(list(ids), self._trie, self.drawn_from.targets(rows))
