"""Clusters of meaning at several grain sizes, each named by the common word nearest to its centre.

They are what facts about eight sources cannot teach a hypernetwork: that label words carry meaning, and that a task
embedding may ask for topics of any kind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

_WORD = re.compile(r"[a-z]{4,12}")
_COMMON_WORDS, _SKIPPED_WORDS = 6000, 150


@dataclass(frozen=True)
class TopicLevel:
    """One grain size.

    Args:
        names: one word per cluster (K).
        assignment: cluster of each text (N,).
    """

    names: tuple[str, ...]
    assignment: np.ndarray


@dataclass(frozen=True)
class Topics:
    """All grain sizes, and the token id of each name (each name is one token)."""

    levels: tuple[TopicLevel, ...]
    token_of: dict[str, int]

    def first_tokens(self, level: int) -> torch.Tensor:
        """Token ids (K,) of the names of one level."""
        return torch.tensor([self.token_of[name] for name in self.levels[level].names])


def common_words(texts: Sequence[str]) -> list[str]:
    """Frequent words of 4 to 12 letters, the most frequent 150 left out."""
    counts = Counter(word for text in texts for word in set(_WORD.findall(text.lower())))
    return [word for word, _ in counts.most_common(_COMMON_WORDS + _SKIPPED_WORDS)][_SKIPPED_WORDS:]


def find_topics(
    vectors: np.ndarray,
    words: Sequence[str],
    word_vectors: np.ndarray,
    sizes: Sequence[int],
    token_of: dict[str, int],
    seed: int,
) -> Topics:
    """Cluster the teacher's vectors and name the clusters.

    Args:
        vectors: (N, 384) of the texts.
        words: candidates for names, each a single token.
        word_vectors: (W, 384) of the words.
        sizes: clusters per level.
        token_of: token id of each word.
        seed: of the clustering.
    """
    from sklearn.cluster import MiniBatchKMeans

    levels = []
    for size in sizes:
        clustering = MiniBatchKMeans(size, random_state=seed, batch_size=4096, n_init=3).fit(vectors.astype(np.float32))
        names = _names(clustering.cluster_centers_, words, word_vectors.astype(np.float32))
        levels.append(TopicLevel(names, clustering.labels_.astype(np.int64)))
    return Topics(tuple(levels), token_of)


def _names(centres: np.ndarray, words: Sequence[str], word_vectors: np.ndarray) -> tuple[str, ...]:
    similarity = (centres - centres.mean(0)) @ word_vectors.T  # (K, W): what sets this cluster apart
    names: dict[int, str] = {}
    taken: set[int] = set()
    for flat in np.argsort(-similarity, axis=None):
        cluster, word = divmod(int(flat), len(words))
        if cluster in names or word in taken:
            continue
        names[cluster] = words[word]
        taken.add(word)
        if len(names) == len(centres):
            break
    return tuple(names[cluster] for cluster in range(len(centres)))
