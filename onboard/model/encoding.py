"""Convert text to token ids and padded tensors. There are no task prefixes: the task embedding conditions the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onboard.data.limits import MAX_TOKENS
from onboard.errors import InputError


class TextEncoder:
    """Encode ids(a) [+ ids(separator) + ids(b)] + end-of-sequence, truncating the longer text first.

    Args:
        tokenizer: a tokenizer of transformers.
        pair_separator: placed between the two texts of a pair.
        max_tokens: maximum number of source tokens, including end-of-sequence.

    Raises:
        InputError: the tokenizer has no end-of-sequence or padding token, or the limit is too small.
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
        """Return the token ids of single texts (a, None) and pairs (a, b), optionally truncated further."""
        room = min(self.max_tokens, max_tokens or self.max_tokens)
        first = self._tokens([a for a, _ in texts])
        second = iter(self._tokens([b for _, b in texts if b is not None]))
        ids = []
        for (_, b), first_ids in zip(texts, first, strict=True):
            right = [] if b is None else next(second)
            middle = [] if b is None else self.separator
            keep_left, keep_right = shares(len(first_ids), len(right), room - 1 - len(middle))
            ids.append([*first_ids[:keep_left], *middle, *right[:keep_right], self.eos_id])
        return ids

    def is_pair(self, ids: Sequence[int]) -> bool:
        """Return whether token ids contain the separator: those of a pair, or of a single text with the separator."""
        width = len(self.separator)
        return any(list(ids[start : start + width]) == self.separator for start in range(len(ids) - width + 1))

    def label_ids(self, word: str) -> list[int]:
        """Return the token ids of a label word, with end-of-sequence.

        Raises:
            InputError: the word has no tokens.
        """
        ids = self.word_ids(word)
        if not ids:
            raise InputError("label-word-without-tokens", word=word)
        return [*ids, self.eos_id]

    def word_ids(self, word: str) -> list[int]:
        """Return the token ids of a word without end-of-sequence; may be empty."""
        return self._tokens([word])[0]

    def _tokens(self, texts: list[str]) -> list[list[int]]:
        if not texts:
            return []
        encoded: list[list[int]] = self.tokenizer(
            texts, add_special_tokens=False, return_attention_mask=False, verbose=False
        )["input_ids"]
        return encoded


def shares(left: int, right: int, budget: int) -> tuple[int, int]:
    """Return how many tokens of each text to keep, at most `budget` in total, truncating the longer one first."""
    if left + right <= budget:
        return left, right
    half = budget // 2
    if right <= half:
        return budget - right, right
    if left <= budget - half:
        return left, budget - left
    return budget - half, half


def pad(ids: Sequence[Sequence[int]], pad_id: int) -> tuple[Tensor, Tensor]:
    """Return input_ids (B, S), padded on the right, and attention_mask (B, S), as LongTensors on the CPU."""
    lengths = np.fromiter(map(len, ids), dtype=np.int64, count=len(ids))
    mask = np.arange(lengths.max(initial=0)) < lengths[:, None]  # (B, S)
    input_ids = np.full(mask.shape, pad_id, dtype=np.int64)
    if mask.size:
        input_ids[mask] = np.concatenate(ids)
    return torch.from_numpy(input_ids), torch.from_numpy(mask.astype(np.int64))
