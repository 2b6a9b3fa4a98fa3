"""Ridge regressions of few rows on many features, for all ridges and without any group of rows, from one decomposition.

The weights are regularized towards zero or towards given weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onboard.statistics.blocks import lengths_of_blocks
from onboard.statistics.decomposition import decomposed


@dataclass(frozen=True)
class RidgeRows:
    """The rows of a regression, with the scaling of their features.

    Args:
        x: (n, h + 1), the last column is the intercept's.
        targets: (n, K), distributions.
        counted: (n,) weight of each row.
        mean: (h,) weighted mean of the features.
        lengths: (h,) divisor of each column: the weighted root mean square of its centered block, such that all blocks
            together have mean square 1.
    """

    x: np.ndarray
    targets: np.ndarray
    counted: np.ndarray
    mean: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, targets: np.ndarray, blocks: int) -> RidgeRows:
        """Scale roots of features (n, h); targets as for `fit_readout`, times the weights of the rows."""
        return cls.counting(features, targets, targets.sum(1, dtype=np.float64), blocks)

    @classmethod
    def of_sets(cls, features: np.ndarray, truth: np.ndarray, blocks: int) -> RidgeRows:
        """Scale roots of features (n, h) of rows with equal weights; truth (n, L) is 1 if a row has a label."""
        return cls.counting(features, truth, np.ones(len(truth)), blocks)

    @classmethod
    def counting(cls, features: np.ndarray, targets: np.ndarray, counted: np.ndarray, blocks: int) -> RidgeRows:
        """Scale roots of features (n, h) of rows with these weights (n,), which the targets already contain."""
        mean = np.average(features, axis=0, weights=counted)
        lengths = lengths_of_blocks(features - mean, blocks, counted)
        x = _with_intercept((features - mean) / lengths)
        return cls(x, targets / counted[:, None], counted, mean, lengths)

    @classmethod
    def around(
        cls, texts: np.ndarray, features: np.ndarray, words: np.ndarray, targets: np.ndarray, blocks: int
    ) -> RidgeRows:
        """Roots of features (n, h) around the mean of roots of texts (m, h), as long as these; and words (K, h), which
        are on that scale already. Targets are (n + K, K); all rows count alike."""
        mean = texts.mean(0)
        lengths = lengths_of_blocks(texts - mean, blocks)
        x = _with_intercept(np.vstack([(features - mean) / lengths, words]))
        return cls(x, targets, np.ones(len(targets)), mean, lengths)

    def seen(self, features: np.ndarray) -> np.ndarray:
        """Scale roots of other features (m, h) like these rows: (m, h + 1)."""
        return _with_intercept((features - self.mean) / self.lengths)


def _with_intercept(scaled: np.ndarray) -> np.ndarray:
    return np.hstack([scaled, np.ones((len(scaled), 1))])


@dataclass(frozen=True)
class Path:
    """The ridge regressions of y (n, C) on x (n, p), for every ridge, from one decomposition of x = u·diag(s)·vᵀ.

    Rows are multiplied by the `roots` (n, 1) of their weights, in x and y alike. With a prior, y is the residual of the
    weights `towards` (C, p), a `scale` of the prior's, which predict `offset` (n, C); these are added again.
    """

    u: np.ndarray
    s: np.ndarray
    v: np.ndarray
    y: np.ndarray
    roots: np.ndarray
    towards: np.ndarray
    offset: np.ndarray
    scale: float = 0.0

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, counted: np.ndarray) -> Path:
        """Return the regressions of rows (n, p) and (n, C) with these weights (n,), towards zero."""
        roots = np.sqrt(counted)[:, None]
        towards, offset = np.zeros((y.shape[1], x.shape[1])), np.zeros_like(y, dtype=np.float64)
        return cls(*decomposed(x * roots), y * roots, roots, towards, offset)

    def drawn(self, x: np.ndarray, weights: np.ndarray, scale: float) -> Path:
        """Return the same regressions (of a path without a prior) towards a scale of weights (C, p - 1)."""
        towards = np.hstack([scale * weights, np.zeros((len(weights), 1))])
        offset = x @ towards.T
        return replace(self, y=self.y - self.roots * offset, towards=towards, offset=offset, scale=scale)

    def weights(self, ridge: float) -> np.ndarray:
        """Weights (C, p) for a ridge."""
        solved = self.v @ ((self.s / (self.s**2 + ridge))[:, None] * (self.u.T @ self.y))
        weights: np.ndarray = solved.T + self.towards
        return weights

    def without_each(self, ridge: float) -> np.ndarray:
        """Predict each row by a regression without it, (n, C): `without` with one group per row."""
        shrunk = self.s**2 / (self.s**2 + ridge)
        fitted = self.u @ (shrunk[:, None] * (self.u.T @ self.y))
        left = np.maximum(1.0 - (self.u**2 * shrunk).sum(1, keepdims=True), np.finfo(np.float64).eps)  # (n, 1)
        counted = self.roots**2
        apart = self.roots * self.y - counted * ((self.roots * self.y).sum(0) / counted.sum())
        moved = apart / (counted.sum() - counted + ridge)
        wrong = (self.y - fitted) / left
        predicted: np.ndarray = (self.y - wrong) / self.roots + moved + self.offset
        return predicted

    def without(self, groups: Sequence[np.ndarray], ridge: float) -> np.ndarray:
        """Predict each row by a regression without its group, (n, C); 0 for rows in no group.

        Without a group its labels are rarer, which would make each of few rows look unlikely. The loss of the intercept
        is therefore compensated.
        """
        shrunk = self.s**2 / (self.s**2 + ridge)
        fitted = self.u @ (shrunk[:, None] * (self.u.T @ self.y))
        predicted = np.zeros_like(self.y)
        counted = self.roots**2
        apart = self.roots * self.y - counted * ((self.roots * self.y).sum(0) / counted.sum())  # from the mean of y
        for rows in _of_one_size(groups):  # (g, m)
            u = self.u[rows]  # (g, m, r)
            hat = (u * shrunk) @ u.transpose(0, 2, 1)
            wrong = np.linalg.solve(np.eye(rows.shape[1]) - hat, (self.y - fitted)[rows])
            rest = counted.sum() - counted[rows].sum(1, keepdims=True)
            moved = apart[rows].sum(1, keepdims=True) / (rest + ridge)  # the mean of the rest, as shrunk by the ridge
            predicted[rows] = (self.y[rows] - wrong) / self.roots[rows] + moved + self.offset[rows]
        return predicted


def _of_one_size(groups: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Groups with the same number m of rows, together (g, m): hundreds of small systems are solved in one call."""
    by_size = defaultdict[int, list[np.ndarray]](list)
    for group in groups:
        by_size[len(group)].append(group)
    return map(np.array, by_size.values())
