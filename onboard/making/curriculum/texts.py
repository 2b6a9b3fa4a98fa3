"""Every text of the curriculum once, as token ids. A row of a task is a few indices into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from onboard.model.encoding import TextEncoder, shares

_AT_ONCE = 5000  # texts per call of the tokenizer


class TextStore:
    """Distinct texts and their token ids (int32, without end-of-sequence), tokenized once in batches.

    A row of stored pieces has the ids that `TextEncoder.encode` gives for the joined text.

    Attributes:
        lengths: tokens of each text (N,).
    """

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._texts: list[str] = []
        self._index: dict[str, int] = {}
        self._flat = np.zeros(0, dtype=np.int32)
        self._ends = np.zeros(1, dtype=np.int64)
        self.lengths = np.zeros(0, dtype=np.int64)
        self._separator = self._tokens([encoder.pair_separator])[0].tolist()

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> str:
        return self._texts[index]

    @property
    def limit(self) -> int:
        """Maximum number of tokens per row, including end-of-sequence."""
        return self._encoder.max_tokens

    @property
    def separator_length(self) -> int:
        """Number of tokens between the texts of a pair."""
        return len(self._separator)

    def add(self, texts: Sequence[str]) -> np.ndarray:
        """Add texts that are new, and return the indices (n,) of all."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._index]
        if fresh:
            for text in fresh:
                self._index[text] = len(self._index)
            self._texts.extend(fresh)
            tokens = self._tokens(fresh)
            self._flat = np.concatenate([self._flat, *tokens])
            ends = self._ends[-1] + np.cumsum([len(ids) for ids in tokens])
            self._ends = np.concatenate([self._ends, ends])
            self.lengths = np.diff(self._ends)
        return np.array([self._index[text] for text in texts], dtype=np.int32)

    def find(self, text: str) -> int | None:
        """Return the index of a text, or None."""
        return self._index.get(text)

    def presence(self, texts: np.ndarray, tokens: Sequence[int]) -> Any:
        """Return a sparse (n, W) matrix of 0 and 1: which texts contain which tokens."""
        from scipy.sparse import csr_matrix

        column = np.full(max(int(self._flat.max()), *tokens) + 1, -1)
        column[np.array(tokens)] = np.arange(len(tokens))
        row_of = np.full(len(self), -1)
        row_of[texts] = np.arange(len(texts))
        rows = np.repeat(row_of, self.lengths)
        columns = column[self._flat]
        matching = (rows >= 0) & (columns >= 0)
        ones = np.ones(int(matching.sum()), dtype=np.float32)
        counts = csr_matrix((ones, (rows[matching], columns[matching])), shape=(len(texts), len(tokens)))
        counts.data[:] = 1.0
        return counts

    def row(self, left: Sequence[int], right: Sequence[int] | None = None) -> list[int]:
        """Return the token ids of a row of pieces, single or a pair. The longer text is truncated."""
        first = self._joined(left)
        if right is None:
            return [*first[: self.limit - 1], self._encoder.eos_id]
        second = self._joined(right)
        keep_first, keep_second = shares(len(first), len(second), self.limit - 1 - len(self._separator))
        return [*first[:keep_first], *self._separator, *second[:keep_second], self._encoder.eos_id]

    def _joined(self, pieces: Sequence[int]) -> list[int]:
        ids: list[int] = []
        for piece in pieces:
            ids += self._flat[self._ends[piece] : self._ends[piece + 1]].tolist()
        return ids

    def _tokens(self, texts: list[str]) -> list[np.ndarray]:
        tokens: list[np.ndarray] = []
        for start in range(0, len(texts), _AT_ONCE):
            encoded = self._encoder.tokenizer(
                texts[start : start + _AT_ONCE], add_special_tokens=False, return_attention_mask=False, verbose=False
            )["input_ids"]
            tokens += [np.array(ids, dtype=np.int32) for ids in encoded]
        return tokens
