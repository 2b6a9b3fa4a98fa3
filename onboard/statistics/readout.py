"""A readout: labels read straight off a text's features, in closed form, with no training and no gradient.

Ridge regression on the labels (a number for each of K, or one value) of signed square roots of the features, so that
a few large ones do not say everything (power normalisation: Perronnin, Sanchez and Mensink 2010, section 3.1). What it
predicts of rows without themselves, or without their whole fold, follows from one decomposition (Allen's PRESS, by
blocks), so regularisation and temperature are chosen on rows that did not train what answers them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.errors import InputError
from onboard.statistics.blocks import BLOCKS, lengths_of_blocks, with_names
from onboard.statistics.decomposition import decomposed
from onboard.statistics.probabilities import blend, mean_loss, softmax
from onboard.statistics.share import usual_share

RIDGES: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the mean squared length of the rows
SHARPNESSES: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # inverse temperatures of the scores
RIDGE_PRIOR: Final = 1.0  # nats that a ridge e times as large or small as the usual one costs: held-out tasks say so
USUAL: Final = (1.0, 4.0)  # ridge and sharpness where too few rows judge
FEWEST_JUDGING: Final = 8
_BEFORE: Final = (0, 1, 3, 4)  # of the blocks, those that a readout of features as they are took of a pair


@dataclass(frozen=True)
class Readout:
    """Linear scores of K labels or buckets, whose softmax answers beside an embedding.

    Args:
        weights: (K, h) float16, to be multiplied by `scale`.
        scale: of the weights.
        bias: (K,) float32.
        share: of the answer that is its own; the embedding's is the rest.
        of_roots: whether it takes the signed roots of features; a readout of before takes them as they are.
    """

    weights: np.ndarray
    scale: float
    bias: np.ndarray
    share: float = 1.0
    of_roots: bool = False

    def columns(self, width: int) -> np.ndarray:
        """Which of so many columns, of every block, it takes: the first ones, or the blocks that pairs had before.

        Raises:
            InputError: there are fewer.
        """
        own = self.weights.shape[1]
        if width < own:
            raise InputError(
                f"The readout takes {own} features, and got {width}.",
                "It belongs to another base: submit the task again.",
            )
        if not self.of_roots and own * BLOCKS == width * len(_BEFORE):
            return np.arange(width).reshape(BLOCKS, -1)[list(_BEFORE)].ravel()
        return np.arange(own)

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """(n, K) float64, of features of every block, or of the blocks that it was made of.

        Raises:
            InputError: fewer features than it takes, or not finite.
        """
        features = features[:, self.columns(features.shape[1])].astype(np.float64)
        _require_finite(features)
        seen = signed_roots(features) if self.of_roots else features
        return softmax(seen @ (self.weights.astype(np.float64) * self.scale).T + self.bias)

    def beside(self, embedding: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Its answers and the embedding's probabilities (n, K) as one; features as of `probabilities`."""
        return blend(embedding, self.probabilities(features), self.share)

    def of_labels(self, order: Sequence[int]) -> Readout:
        """The same with its labels in another order."""
        places = list(order)
        return replace(self, weights=self.weights[places], bias=self.bias[places])


@dataclass(frozen=True)
class Fitted:
    """A readout of n rows.

    Args:
        readout: of all of them.
        judged: indices of the rows that a group held (m,), ascending.
        probabilities: (m, K) of these, each predicted without its group.
        ridge, sharpness: that these rows chose; of a regression the second is the deviation of what is predicted.
        loss: of these rows in all, in nats, and what a ridge far from the usual one costs.
        names: (K, h) of the labels' own words, each a row of its label; None where rows left out are better without.
    """

    readout: Readout
    judged: np.ndarray
    probabilities: np.ndarray
    ridge: float
    sharpness: float
    loss: float
    names: np.ndarray | None = None


def fit_readout(
    features: np.ndarray,
    targets: np.ndarray,
    groups: Sequence[np.ndarray],
    values: np.ndarray | None = None,
    blocks: int = 1,
    names: np.ndarray | None = None,
) -> Fitted:
    """A readout in closed form, with the labels' own words as rows of them unless rows left out are better without; its
    share is the usual one of so many rows.

    Args:
        features: (n, h), n ≥ 2; blocks of as many columns, each of which is to say as much as any other.
        targets: (n, K) distribution over labels, one-hot, times what the row counts (1 where all count alike); of a
            regression over buckets.
        groups: of rows (indices), each predicted without the rows of its group; a row may be in none.
        values: of a regression: that of every bucket, ascending (K,).
        blocks: how many blocks of columns the features have.
        names: features (K, some of the first blocks) of the labels' own words; None of a regression.

    Raises:
        InputError: features that are not finite, fewer than two rows, or a label without a row.
    """
    _require_finite(features)
    _require_rows(targets, regression=values is not None)
    features = signed_roots(features)
    best = _fitted(features, targets, groups, values, blocks)
    if names is not None:
        _require_finite(names)
        named = _fitted(*with_names(features, targets, signed_roots(names), blocks), groups, None, blocks)
        best = replace(named, names=names) if named.loss <= best.loss else best
    return replace(best, readout=replace(best.readout, share=usual_share(len(features))))


def signed_roots(features: np.ndarray) -> np.ndarray:
    """sign(x)·√|x| of every feature, float64."""
    roots: np.ndarray = np.sign(features) * np.sqrt(np.abs(features, dtype=np.float64))
    return roots


def _fitted(
    features: np.ndarray,
    targets: np.ndarray,
    groups: Sequence[np.ndarray],
    values: np.ndarray | None,
    blocks: int,
) -> Fitted:
    rows = _Rows.of(features, targets, blocks)
    y = rows.targets if values is None else (targets @ values)[:, None]
    centre = np.zeros(y.shape[1]) if values is None else y.mean(0)
    path = _Path.of(rows.x, y - centre, rows.counted)
    judged = np.sort(np.concatenate(groups)) if len(groups) else np.zeros(0, dtype=np.int64)
    chosen = _chosen(path, groups, judged, targets, None if values is None else (values, float(centre[0])))
    solved = path.weights(chosen.ridge)  # (C, h + 1)
    weights, bias = solved[:, :-1], solved[:, -1]
    weights = weights / rows.lengths
    bias = bias - weights @ rows.mean + centre
    if values is not None:
        weights, bias = _of_buckets(weights[0], float(bias[0]), values, chosen.sharpness)
    else:
        weights, bias = chosen.sharpness * weights, chosen.sharpness * bias
    return Fitted(_packed(weights, bias), judged, chosen.probabilities, chosen.ridge, chosen.sharpness, chosen.loss)


def answers_after(
    features: np.ndarray,
    targets: np.ndarray,
    asked: np.ndarray,
    like: Fitted,
    blocks: int = 1,
) -> np.ndarray:
    """What a readout of fewer rows would answer, as regular and as sharp as another of the same task.

    Args:
        features, targets: (n, h) and (n, K) as of `fit_readout`, of the rows that it is made of; a label may have none.
        asked: features (m, h) of other rows.
        like: the other; where it has rows of the labels' own words, so has this one.
        blocks: of columns, as of `fit_readout`.

    Returns:
        Probabilities (m, K).
    """
    features = signed_roots(features)
    if like.names is not None:
        features, targets = with_names(features, targets, signed_roots(like.names), blocks)
    rows = _Rows.of(features, targets, blocks)
    weights = _Path.of(rows.x, rows.targets, rows.counted).weights(like.ridge)
    return softmax(like.sharpness * (rows.seen(signed_roots(asked)) @ weights.T))


@dataclass(frozen=True)
class _Rows:
    """The rows of a regression, and how features become what it sees.

    Args:
        x: (n, h + 1), the last column is the intercept's.
        targets: (n, K), distributions.
        counted: (n,) what each row counts.
        mean: (h,) of the features, each row as often as it counts.
        lengths: (h,) what each column is divided by: its block's root mean square once the rows are centred, each as
            often as it counts, and all blocks together have mean square 1.
    """

    x: np.ndarray
    targets: np.ndarray
    counted: np.ndarray
    mean: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, features: np.ndarray, targets: np.ndarray, blocks: int) -> _Rows:
        """Roots of features (n, h); targets as of `fit_readout`, times what their rows count."""
        counted = targets.sum(1, dtype=np.float64)
        mean = np.average(features, axis=0, weights=counted)
        lengths = lengths_of_blocks(features - mean, blocks, counted)
        x = _with_intercept((features - mean) / lengths)
        return cls(x, targets / counted[:, None], counted, mean, lengths)

    def seen(self, features: np.ndarray) -> np.ndarray:
        """Roots of other features (m, h) as these rows' own: (m, h + 1)."""
        return _with_intercept((features - self.mean) / self.lengths)


def _with_intercept(scaled: np.ndarray) -> np.ndarray:
    return np.hstack([scaled, np.ones((len(scaled), 1))])


@dataclass(frozen=True)
class _Path:
    """The ridge regressions of y (n, C) on x (n, p), for every ridge, from one decomposition of x = u·diag(s)·vᵀ.

    Rows that count more are longer, in x and y alike: by the `roots` (n, 1) of what they count.
    """

    u: np.ndarray
    s: np.ndarray
    v: np.ndarray
    y: np.ndarray
    roots: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, counted: np.ndarray) -> _Path:
        roots = np.sqrt(counted)[:, None]
        return cls(*decomposed(x * roots), y * roots, roots)

    def weights(self, ridge: float) -> np.ndarray:
        """(C, p)"""
        solved: np.ndarray = self.v @ ((self.s / (self.s**2 + ridge))[:, None] * (self.u.T @ self.y))
        return solved.T

    def without(self, groups: Sequence[np.ndarray], ridge: float) -> np.ndarray:
        """Predictions (n, C), of each row by a regression without its group; 0 of rows that are in none.

        Without a group its labels are rarer than they are, and of few rows every one would be judged as unlikely: what
        the intercept loses by that is given back.
        """
        shrunk = self.s**2 / (self.s**2 + ridge)
        fitted = self.u @ (shrunk[:, None] * (self.u.T @ self.y))
        predicted = np.zeros_like(self.y)
        counted = self.roots**2
        apart = self.roots * self.y - counted * ((self.roots * self.y).sum(0) / counted.sum())  # from the mean of y
        for group in groups:
            hat = (self.u[group] * shrunk) @ self.u[group].T
            wrong = np.linalg.solve(np.eye(len(group)) - hat, self.y[group] - fitted[group])
            rest = counted.sum() - counted[group].sum()
            moved = apart[group].sum(0) / (rest + ridge)  # the mean of the rest, as far as the ridge lets it through
            predicted[group] = (self.y[group] - wrong) / self.roots[group] + moved
        return predicted


@dataclass(frozen=True)
class _Chosen:
    ridge: float
    sharpness: float  # of classes; of a regression the deviation of what is predicted
    probabilities: np.ndarray
    loss: float


def _chosen(
    path: _Path,
    groups: Sequence[np.ndarray],
    judged: np.ndarray,
    targets: np.ndarray,
    scale: tuple[np.ndarray, float] | None,
) -> _Chosen:
    """Ridge and sharpness with the least loss on the rows that judge, a ridge far from the usual one only where they
    gain by it; `scale` of a regression: buckets and mean."""
    few = len(judged) < FEWEST_JUDGING
    options = []
    for ridge in (USUAL[0],) if few else RIDGES:
        scores = path.without(groups, ridge)[judged]
        for sharpness in _sharpnesses(path, scores, targets[judged], scale, few=few):
            if scale is None:
                probabilities = softmax(sharpness * scores)
            else:
                probabilities = _normal(scores[:, 0] + scale[1], sharpness, scale[0])
            loss = len(judged) * mean_loss(probabilities, targets[judged]) if len(judged) else 0.0
            loss += RIDGE_PRIOR * abs(np.log(ridge / USUAL[0]))
            options.append(_Chosen(ridge, sharpness, probabilities, loss))
    return min(options, key=lambda option: option.loss)


def _sharpnesses(
    path: _Path, scores: np.ndarray, targets: np.ndarray, scale: tuple[np.ndarray, float] | None, *, few: bool
) -> Sequence[float]:
    if scale is None:
        return (USUAL[1],) if few else SHARPNESSES
    values, mean = scale
    errors = (targets @ values) - scores[:, 0] - mean if not few else path.y[:, 0]
    width = float(values[-1] - values[0]) / max(1, len(values) - 1)
    return (max(float(np.sqrt((errors**2).mean())), width / 2),)


def _of_buckets(
    weights: np.ndarray, bias: float, values: np.ndarray, deviation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of buckets whose softmax is a normal distribution around the predicted value."""
    slopes = values / deviation**2
    return np.outer(slopes, weights), slopes * bias - values**2 / (2 * deviation**2)


def _normal(mean: np.ndarray, deviation: float, values: np.ndarray) -> np.ndarray:
    return softmax(-((mean[:, None] - values) ** 2) / (2 * deviation**2))


def _packed(weights: np.ndarray, bias: np.ndarray) -> Readout:
    scale = float(np.abs(weights).max()) or 1.0
    return Readout((weights / scale).astype(np.float16), scale, bias.astype(np.float32), of_roots=True)


def _require_finite(features: np.ndarray) -> None:
    if not np.isfinite(features).all():
        raise InputError("Features of a text are not finite numbers.", "onboard doctor")


def _require_rows(targets: np.ndarray, *, regression: bool) -> None:
    if len(targets) < 2:
        raise InputError("A readout needs two rows at least.", "Submit more rows.")
    if not regression and (targets.sum(0) <= 0).any():
        raise InputError("A label has no training row.", "Submit a row of every label, or --readout never.")
