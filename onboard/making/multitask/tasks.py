"""Source tasks for training: rows encoded once into flat arrays, epochs of batches with similar lengths."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from onboard.domain.dataset import Example
from onboard.making.curriculum.source import Source
from onboard.model.batch import Batch
from onboard.model.encoding import TextEncoder
from onboard.model.scoring import LabelTrie

_ENCODED_AT_ONCE = 8192  # rows; more at a time would create millions of Python integers
_LENGTH_NOISE = (0.8, 1.25)  # varies the composition of batches between epochs


class EncodedRows:
    """Token ids of many rows in one int32 array.

    Args:
        rows: texts and pairs.
    """

    def __init__(self, rows: Sequence[Example], encoder: TextEncoder) -> None:
        flat: list[np.ndarray] = []
        lengths: list[int] = []
        for start in range(0, len(rows), _ENCODED_AT_ONCE):
            ids = encoder.encode([(row.text_a, row.text_b) for row in rows[start : start + _ENCODED_AT_ONCE]])
            lengths += map(len, ids)
            flat.append(np.concatenate([np.array(row, dtype=np.int32) for row in ids]))
        self._flat = np.concatenate(flat) if flat else np.zeros(0, dtype=np.int32)
        self.lengths = np.array(lengths, dtype=np.int64)
        self._ends = np.concatenate([[0], np.cumsum(self.lengths)])

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: np.ndarray) -> list[Sequence[int]]:
        """Return the token ids of some rows as views (int32 arrays, used as sequences of integers)."""
        tokens: list[Any] = [self._flat[self._ends[row] : self._ends[row + 1]] for row in rows.tolist()]
        return tokens


class SourceBatches:
    """A source's rows with its label words. Every row occurs once per epoch, so labels keep their frequencies.

    Args:
        source: with its training rows.
        seed: of the epochs' order.
    """

    def __init__(self, source: Source, encoder: TextEncoder, seed: int) -> None:
        self.name, self.words, self.rows = source.name, source.words, len(source.train)
        self._encoded = EncodedRows(source.train, encoder)
        self._targets = source.targets()
        self._trie = LabelTrie.build([encoder.label_ids(word) for word in source.words])
        self._seed = seed
        self._epoch: tuple[tuple[int, int], list[np.ndarray]] | None = None

    def batch(self, step: int, size: int) -> Batch:
        """Return this task's batch number `step`, at most `size` rows."""
        epoch, place = divmod(step, ceil(self.rows / size))
        rows = self._batches(epoch, size)[place]
        return Batch(self._encoded.take(rows), self._trie, self._targets[rows])

    def _batches(self, epoch: int, size: int) -> list[np.ndarray]:
        if self._epoch is None or self._epoch[0] != (epoch, size):
            rng = np.random.default_rng((self._seed, 11, epoch))
            order = np.argsort(self._encoded.lengths * rng.uniform(*_LENGTH_NOISE, self.rows), kind="stable")
            parts = np.array_split(order, ceil(self.rows / size))
            self._epoch = ((epoch, size), [parts[index] for index in rng.permutation(len(parts))])
        return self._epoch[1]
