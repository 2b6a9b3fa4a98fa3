"""Text to token ids and padded tensors. No task prefixes: the task embedding is the conditioning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onboard.data.limits import MAX_TOKENS
from onboard.errors import InputError


class TextEncoder:
    """ids(a) [+ ids(separator) + ids(b)] + end-of-sequence, cut on token level, the longer text first.

    Args:
        tokenizer: a tokenizer of transformers.
        pair_separator: stands between the two texts of a pair.
        max_tokens: limit of a source text in tokens, end-of-sequence included.

    Raises:
        InputError: the tokenizer has no end-of-sequence or padding token, or the limit leaves no room.
    """

    def __init__(self, tokenizer: Any, pair_separator: str = "|", max_tokens: int = MAX_TOKENS) -> None:
        if tokenizer.eos_token_id is None or tokenizer.pad_token_id is None:
            raise InputError("tokenizer-lacks-special-tokens")
        self.tokenizer = tokenizer
        self.pair_separator = pair_separator
        self.max_tokens = max_tokens
        self.eos_id: int = tokenizer.eos_token_id
        self.pad_id: int = tokenizer.pad_token_id
        self.separator: list[int] = self._tokens([pair_separator])[0]
        if max_tokens < len(self.separator) + 3:
            raise InputError("too-few-tokens-for-pairs", max_tokens=max_tokens)

    def encode(self, texts: Sequence[tuple[str, str | None]], max_tokens: int | None = None) -> list[list[int]]:
        """Token ids of single texts (a, None) and pairs (a, b), cut after fewer tokens where that is asked."""
        room = min(self.max_tokens, max_tokens or self.max_tokens)
        first = self._tokens([a for a, _ in texts])
        second = iter(self._tokens([b for _, b in texts if b is not None]))
        ids = []
        for (_, b), left in zip(texts, first, strict=True):
            right = [] if b is None else next(second)
            middle = [] if b is None else self.separator
            keep_left, keep_right = shares(len(left), len(right), room - 1 - len(middle))
            ids.append([*left[:keep_left], *middle, *right[:keep_right], self.eos_id])
        return ids

    def is_pair(self, ids: Sequence[int]) -> bool:
        """Whether token ids hold the separator, as those of a pair do (and of a single text that has it itself)."""
        width = len(self.separator)
        return any(list(ids[start : start + width]) == self.separator for start in range(len(ids) - width + 1))

    def label_ids(self, word: str) -> list[int]:
        """Token ids of a label word, with end-of-sequence.

        Raises:
            InputError: the tokenizer makes nothing of the word.
        """
        ids = self.word_ids(word)
        if not ids:
            raise InputError("label-word-without-tokens", word=word)
        return [*ids, self.eos_id]

    def word_ids(self, word: str) -> list[int]:
        """Token ids of a word alone, without end-of-sequence; empty where the tokenizer makes nothing of it."""
        return self._tokens([word])[0]

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        encoded: list[list[int]] = self.tokenizer(
            texts, add_special_tokens=False, return_attention_mask=False, verbose=False
        )["input_ids"]
        return encoded


def shares(left: int, right: int, budget: int) -> tuple[int, int]:
    """How many tokens of each text are kept when the longer is cut first: never more than `budget` together."""
    if left + right <= budget:
        return left, right
    half = budget // 2
    if right <= half:
        return budget - right, right
    if left <= budget - half:
        return left, budget - left
    return budget - half, half


def pad(ids: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Padded on the right: input_ids (B, S) and attention_mask (B, S), both LongTensor, on the CPU."""
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (B, S)
    input_ids = np.full(mask.shape, pad_id, dtype=np.int64)
    if mask.size:
        input_ids[mask] = np.concatenate(ids)
    return torch.from_numpy(input_ids), torch.from_numpy(mask.astype(np.int64))
