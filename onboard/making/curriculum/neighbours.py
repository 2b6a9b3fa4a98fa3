"""Texts that mean nearly the same, by the teacher: nearest neighbours within a sample, in blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_BLOCK = 1000


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Pairs of a sample of texts with their cosine.

    Args:
        left, right: places in what was sampled from (P,).
        cosine: of each pair (P,).
    """

    left: np.ndarray
    right: np.ndarray
    cosine: np.ndarray

    def between(self, low: float, high: float) -> np.ndarray:
        """Pairs with a cosine in [low, high)."""
        return np.flatnonzero((self.cosine >= low) & (self.cosine < high))


def nearest(vectors: np.ndarray, sample: np.ndarray, count: int) -> Neighbours:
    """For every text of a sample its `count` nearest others in the sample.

    Args:
        vectors: unit vectors (N, 384).
        sample: places in `vectors` (n,).
        count: neighbours per text.
    """
    own = vectors[sample].astype(np.float32)
    count = min(count, len(sample) - 1)
    left, right, cosine = [], [], []
    for start in range(0, len(own), _BLOCK):
        similarity = own[start : start + _BLOCK] @ own.T  # (block, n)
        rows = np.arange(len(similarity))
        similarity[rows, start + rows] = -2.0
        near = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
        left.append(np.repeat(start + rows, count))
        right.append(near.ravel())
        cosine.append(np.take_along_axis(similarity, near, axis=1).ravel())
    return Neighbours(sample[np.concatenate(left)], sample[np.concatenate(right)], np.concatenate(cosine))


def dense_sample(vectors: np.ndarray, fitting: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Places (n,) of about `size` texts that keep their neighbours: whole neighbourhoods of randomly chosen texts.

    Args:
        vectors: unit vectors (N, 384).
        fitting: places that may be chosen.
        size: of the sample.
        rng: chooses.
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
    chosen = order[: int(np.searchsorted(ends, size)) + 1]
    sample: np.ndarray = fitting[np.isin(nearest_centre, chosen)][:size]
    return sample
