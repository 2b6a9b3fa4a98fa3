"""Clusters of meaning at several grain sizes, each named by the common word nearest to its centre.

They are what facts about eight sources cannot teach a hypernetwork: that label words carry meaning, and that a task
embedding may ask for topics of any kind.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_WORD = re.compile(r"[a-z]{4,12}")
COMMON_WORDS, SKIPPED_WORDS = 6000, 150
_COMMON_SHARE = 0.03  # of a cluster's texts that hold its name, at least


@dataclass(frozen=True)
class TopicLevel:
    """One grain size.

    Args:
        names: one word per cluster (K).
        assignment: cluster of each text (N,).
    """

    names: tuple[str, ...]
    assignment: np.ndarray


def common_words(texts: Sequence[str]) -> list[str]:
    """Frequent words of 4 to 12 letters, the most frequent 150 left out; equally frequent ones as they come.

    The order is the texts' own and not that of a set, which differs from process to process: vectors of these words
    are kept and read again by a run that goes on.
    """
    counts = Counter(word for text in texts for word in dict.fromkeys(_WORD.findall(text.lower())))
    return [word for word, _ in counts.most_common(COMMON_WORDS + SKIPPED_WORDS)][SKIPPED_WORDS:]


def find_level(
    vectors: np.ndarray,
    words: Sequence[str],
    word_vectors: np.ndarray,
    size: int,
    seed: int,
    presence: Any = None,
) -> TopicLevel:
    """One grain size: `size` clusters of the vectors (N, 384), named by words with vectors (W, 384).

    With `presence`, a sparse (N, W) that says which text holds which word, a name is a word that the cluster's texts
    hold far more often than others do.
    """
    from sklearn.cluster import MiniBatchKMeans

    clustering = MiniBatchKMeans(size, random_state=seed, batch_size=4096, n_init=3).fit(vectors.astype(np.float32))
    assignment = clustering.labels_.astype(np.int64)
    typical = None if presence is None else _typical_words(presence, assignment, size)
    names = _names(clustering.cluster_centers_, words, word_vectors.astype(np.float32), typical)
    return TopicLevel(names, assignment)


def _typical_words(presence: Any, assignment: np.ndarray, size: int) -> np.ndarray:
    """Log of how much more often a cluster's texts hold a word than all texts do (K, W); 0 where they rarely do."""
    from scipy.sparse import csr_matrix

    texts = np.arange(len(assignment))
    members = csr_matrix((np.ones(len(texts), dtype=np.float32), (assignment, texts)), shape=(size, len(texts)))
    counts = (members @ presence).toarray()  # (K, W)
    share = counts / np.maximum(1, np.bincount(assignment, minlength=size))[:, None]
    overall = np.maximum(counts.sum(0), 1) / len(texts)
    lift = np.log(np.maximum(share, 1e-9) / overall)
    return np.where((share >= _COMMON_SHARE) & (lift > 0), lift, 0.0)


def nearest_to_centre(vectors: np.ndarray, assignment: np.ndarray, share: float) -> np.ndarray:
    """Whether a text (N,) is among the given share of its cluster's texts that lie nearest to the centre."""
    near = np.zeros(len(assignment), dtype=bool)
    for cluster in np.unique(assignment):
        members = np.flatnonzero(assignment == cluster)
        own = vectors[members].astype(np.float32)
        similarity = own @ own.mean(0)
        near[members] = similarity >= np.quantile(similarity, 1 - share)
    return near


def _names(
    centres: np.ndarray, words: Sequence[str], word_vectors: np.ndarray, typical: np.ndarray | None
) -> tuple[str, ...]:
    similarity = (centres - centres.mean(0)) @ word_vectors.T  # (K, W): what sets this cluster apart
    if typical is not None:
        similarity = np.where(typical > 0, np.maximum(similarity, 0) * typical, 0.01 * similarity)
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
