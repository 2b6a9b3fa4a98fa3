"""Label words: which ones a base's tokenizer knows, and which common words have nearly the same meaning."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from onboard.model.encoding import TextEncoder
from onboard.model.scoring import LabelTrie

_MOST_TOKENS = 3


class Wording:
    """Label words as tokenized for one base's decoder.

    Args:
        vectors: the teacher's unit vectors of the words (W, 384).
    """

    def __init__(self, encoder: TextEncoder, words: Sequence[str], vectors: np.ndarray) -> None:
        self._encoder = encoder
        self._unknown = encoder.tokenizer.unk_token_id
        self.ids = cache(self._ids)
        single = [len(self.ids(word)) == 2 and self.knows(word) for word in words]
        self.words = [word for word, fine in zip(words, single, strict=True) if fine]
        self.vectors = vectors[np.flatnonzero(single)].astype(np.float32).reshape(len(self.words), -1)
        self._place = {word: index for index, word in enumerate(self.words)}

    def _ids(self, word: str) -> tuple[int, ...]:
        return tuple(self._encoder.label_ids(word))

    def knows(self, word: str) -> bool:
        """Return whether the word consists of 1 to 3 known tokens."""
        return len(self.ids(word)) <= _MOST_TOKENS + 1 and self._unknown not in self.ids(word)

    def fit(self, words: Sequence[str]) -> bool:
        """Return whether the words can be one task's labels: two or more, known, with different first tokens."""
        return (
            len(words) >= 2
            and all(self.knows(word) for word in words)
            and len({self.ids(word)[0] for word in words}) == len(words)
        )

    def fitting(self, wordings: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
        """Return the wordings that fit."""
        return [tuple(words) for words in wordings if self.fit(words)]

    def trie(self, words: Sequence[str]) -> LabelTrie:
        """Return the label trie of the words."""
        return LabelTrie.build([self.ids(word) for word in words])

    def vector(self, word: str) -> np.ndarray | None:
        """Return the teacher's vector of a common word, or None."""
        place = self._place.get(word)
        return None if place is None else self.vectors[place]

    def near(self, word: str, count: int, apart_from: Sequence[str] = ()) -> list[str]:
        """Return common words nearest to a word, without the same stem and not nearer to a word of `apart_from`."""
        vector = self.vector(word)
        if vector is None:
            return []
        similarity = self.vectors @ vector
        others = [other for near in apart_from if (other := self.vector(near)) is not None]
        if others:
            similarity = np.where((self.vectors @ np.stack(others).T).max(1) > similarity - 0.05, -1.0, similarity)
        order = np.argsort(-similarity)[: count + 20]
        neighbours = [self.words[index] for index in order if self.words[index][:4] != word[:4]]
        return neighbours[:count]
