"""Texts with nearly the same meaning, by the teacher: nearest neighbors within a sample, in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_BLOCK = 1000


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Pairs from a sample of texts with their cosine.

    Args:
        left, right: indices of the texts (P,).
        cosine: of each pair (P,).
    """

    left: np.ndarray
    right: np.ndarray
    cosine: np.ndarray

    def between(self, low: float, high: float) -> np.ndarray:
        """Return the pairs with a cosine in [low, high)."""
        return np.flatnonzero((self.cosine >= low) & (self.cosine < high))


def nearest(vectors: np.ndarray, sample: np.ndarray, count: int) -> Neighbours:
    """Return, for every text of a sample, its `count` nearest other texts in the sample.

    Args:
        vectors: unit vectors (N, 384).
        sample: indices into `vectors` (n,).
        count: neighbors per text.
    """
    sampled = vectors[sample].astype(np.float32)
    count = min(count, len(sample) - 1)
    left, right, cosine = [], [], []
    for start in range(0, len(sampled), _BLOCK):
        similarity = sampled[start : start + _BLOCK] @ sampled.T  # (block, n)
        rows = np.arange(len(similarity))
        similarity[rows, start + rows] = -2.0
        near = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
        left.append(np.repeat(start + rows, count))
        right.append(near.ravel())
        cosine.append(np.take_along_axis(similarity, near, axis=1).ravel())
    return Neighbours(sample[np.concatenate(left)], sample[np.concatenate(right)], np.concatenate(cosine))


def dense_sample(vectors: np.ndarray, fitting: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return a sample (n,) of about `size` texts that keeps their neighbors: the neighborhoods of random texts.

    Args:
        vectors: unit vectors (N, 384).
        fitting: indices that may be drawn.
        rng: draws the centers.
    """
    if len(fitting) <= size:
        return fitting
    centres = rng.choice(fitting, 400, replace=False)
    of_centres = vectors[centres].astype(np.float32).T  # (384, 400)
    nearest_centre = np.concatenate([
        (vectors[fitting[start : start + 20 * _BLOCK]].astype(np.float32) @ of_centres).argmax(1)
        for start in range(0, len(fitting), 20 * _BLOCK)
    ])  # fmt: skip
    order = rng.permutation(len(centres))
    ends = np.cumsum(np.bincount(nearest_centre, minlength=len(centres))[order])
    selected = order[: int(np.searchsorted(ends, size)) + 1]
    sample: np.ndarray = fitting[np.isin(nearest_centre, selected)][:size]
    return sample
