"""Clusters of texts at several levels of granularity, each named by the common word nearest to its center.

They teach a hypernetwork two facts that eight sources cannot: label words carry meaning, and a task embedding can
represent topics of any kind.
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
_COMMON_SHARE = 0.03  # minimum share of a cluster's texts that contain its name


@dataclass(frozen=True)
class TopicLevel:
    """One level of granularity.

    Args:
        names: one word per cluster (K).
        assignment: cluster of each text (N,).
    """

    names: tuple[str, ...]
    assignment: np.ndarray


def common_words(texts: Sequence[str]) -> list[str]:
    """Return frequent words of 4 to 12 letters, without the 150 most frequent. Ties keep the order of the texts.

    The order must not be that of a set, which differs between processes, because a resumed run reads stored vectors of
    these words.
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
    """Return one level: `size` clusters of the vectors (N, 384), named by words with vectors (W, 384).

    With `presence`, a sparse (N, W) matrix of which text contains which word, a cluster's name must be much more
    frequent in its texts than in others.
    """
    from sklearn.cluster import MiniBatchKMeans

    clustering = MiniBatchKMeans(size, random_state=seed, batch_size=4096, n_init=3).fit(vectors.astype(np.float32))
    assignment = clustering.labels_.astype(np.int64)
    typical = None if presence is None else _typical_words(presence, assignment, size)
    names = _names(clustering.cluster_centers_, words, word_vectors.astype(np.float32), typical)
    return TopicLevel(names, assignment)


def _typical_words(presence: Any, assignment: np.ndarray, size: int) -> np.ndarray:
    """Return the log ratio of word frequencies in a cluster and overall (K, W); 0 for rare words."""
    from scipy.sparse import csr_matrix

    texts = np.arange(len(assignment))
    members = csr_matrix((np.ones(len(texts), dtype=np.float32), (assignment, texts)), shape=(size, len(texts)))
    counts = (members @ presence).toarray()  # (K, W)
    share = counts / np.maximum(1, np.bincount(assignment, minlength=size))[:, None]
    overall = np.maximum(counts.sum(0), 1) / len(texts)
    lift = np.log(np.maximum(share, 1e-9) / overall)
    return np.where((share >= _COMMON_SHARE) & (lift > 0), lift, 0.0)


def nearest_to_centre(vectors: np.ndarray, assignment: np.ndarray, share: float) -> np.ndarray:
    """Return whether a text (N,) is among the given share of its cluster's texts that are nearest to the center."""
    near = np.zeros(len(assignment), dtype=bool)
    for cluster in np.unique(assignment):
        members = np.flatnonzero(assignment == cluster)
        member_vectors = vectors[members].astype(np.float32)
        similarity = member_vectors @ member_vectors.mean(0)
        near[members] = similarity >= np.quantile(similarity, 1 - share)
    return near


def _names(
    centres: np.ndarray, words: Sequence[str], word_vectors: np.ndarray, typical: np.ndarray | None
) -> tuple[str, ...]:
    similarity = (centres - centres.mean(0)) @ word_vectors.T  # (K, W): relative to the mean, to separate clusters
    if typical is not None:
        similarity = np.where(typical > 0, np.maximum(similarity, 0) * typical, 0.01 * similarity)
    names: dict[int, str] = {}
    used: set[int] = set()
    for flat in np.argsort(-similarity, axis=None):
        cluster, word = divmod(int(flat), len(words))
        if cluster in names or word in used:
            continue
        names[cluster] = words[word]
        used.add(word)
        if len(names) == len(centres):
            break
    return tuple(names[cluster] for cluster in range(len(centres)))
