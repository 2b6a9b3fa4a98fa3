"""In which order texts are labeled: by how sure the answers are, and by how unlike the texts are to one another."""

from __future__ import annotations

from typing import Final

import numpy as np

SURE: Final = 0.95  # a probability; of twenty texts that are answered more surely less than one should be wrong
_SAME: Final = 1e-6  # cosine distance up to which two texts say the same to the encoder


def uncertainty(probabilities: np.ndarray) -> np.ndarray:
    """Entropy of (n, K) probabilities as a share of log K, (n,); 0 where there is nothing to choose."""
    kinds = probabilities.shape[1]
    entropy = -(probabilities * np.log(np.maximum(probabilities, np.finfo(np.float32).tiny))).sum(1)
    share: np.ndarray = entropy / np.log(kinds) if kinds > 1 else np.zeros(len(probabilities))
    return share


def margin(probabilities: np.ndarray) -> np.ndarray:
    """How far the best answer of (n, K) probabilities is ahead of the second, (n,); 1 where there is only one.

    People label the texts with the smallest margin first: no other measured order is better
    (bench/results/labelling.md).
    """
    if probabilities.shape[1] < 2:
        return np.ones(len(probabilities))
    best = np.partition(probabilities, -2, axis=1)
    ahead: np.ndarray = best[:, -1] - best[:, -2]
    return ahead


def margin_of_sets(scores: np.ndarray) -> np.ndarray:
    """How far the least certain of (n, L) independent scores is from 1/2, (n,), from 0 to 1."""
    ahead: np.ndarray = np.abs(2 * scores - 1).min(1)
    return ahead


def farthest_first(features: np.ndarray, count: int, taken: np.ndarray | None = None) -> list[int]:
    """Indices of at most `count` rows of features (n, h): the first, then always the one farthest from all taken.

    Rows with the very features of a taken one are left out.

    Args:
        features: (n, h).
        count: how many.
        taken: features (m, h) of rows that were taken before; without them the first row is the first.
    """
    directions = _directions(features)
    nearest, chosen = np.full(len(features), np.inf), list[int]()
    if taken is not None and len(taken):
        nearest = 1.0 - (directions @ _directions(taken).T).max(1)
    for _ in range(min(count, len(features))):
        best = int(nearest.argmax())
        if nearest[best] <= _SAME:
            break
        chosen.append(best)
        nearest = np.minimum(nearest, 1.0 - directions @ directions[best])
    return chosen


def _directions(features: np.ndarray) -> np.ndarray:
    unit: np.ndarray = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    return unit
