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
from onboard.statistics.blocks import BLOCKS, with_names
from onboard.statistics.prior import Lesson, Prior, names_on_scale
from onboard.statistics.probabilities import blend, mean_loss, sigmoid, softmax
from onboard.statistics.ridge import Path, Rows
from onboard.statistics.share import usual_share

RIDGES: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # of the mean squared length of the rows
SHARPNESSES: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # inverse temperatures of the scores
SHARPNESS_PRIOR: Final = 1.0  # nats that a sharpness e times as large or small as the usual one costs
RIDGE_PRIOR: Final = 1.0  # nats that a ridge e times as large or small as the usual one costs: held-out tasks say so
USUAL: Final = (1.0, 4.0)  # ridge and sharpness where too few rows judge
FEWEST_JUDGING: Final = 8
FOLDS: Final = 10  # of the rows that are labelled so far
PRIOR_SCALES: Final = (0.75, 1.0, 0.5, 0.25, 0.0)  # how far it is drawn towards the prior, the usual one first
SCALE_PRIOR: Final = 2.0  # nats that one more or less costs: held-out tasks say so, as of the usual one
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
        independent: whether each label has a score by itself, as where a text may have several; else they sum to one.
    """

    weights: np.ndarray
    scale: float
    bias: np.ndarray
    share: float = 1.0
    of_roots: bool = False
    independent: bool = False

    def columns(self, width: int) -> np.ndarray:
        """Which of so many columns, of every block, it takes: the first ones, or the blocks that pairs had before.

        Raises:
            InputError: there are fewer.
        """
        own = self.weights.shape[1]
        if width < own:
            raise InputError("readout-width-differs", own=own, width=width)
        if not self.of_roots and own * BLOCKS == width * len(_BEFORE):
            return np.arange(width).reshape(BLOCKS, -1)[list(_BEFORE)].ravel()
        return np.arange(own)

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """(n, K) float64, of features of every block, or of the blocks that it was made of; or independent scores.

        Raises:
            InputError: fewer features than it takes, or not finite.
        """
        features = features[:, self.columns(features.shape[1])].astype(np.float64)
        require_finite(features)
        seen = signed_roots(features) if self.of_roots else features
        scores = seen @ (self.weights.astype(np.float64) * self.scale).T + self.bias
        return sigmoid(scores) if self.independent else softmax(scores)

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
        ridge: that these rows chose.
        sharpness: that these rows chose; None of a regression.
        loss: of these rows in all, in nats, and what a ridge far from the usual one costs.
        names: (K, h) of the labels' own words, each a row of its label; None where rows left out are better without.
        drawn_to: (K, h) weights that it was drawn towards, on the rows' scale; None without a prior, or where rows left
            out are better without.
        scale: of the prior's weights that these rows chose; 0 without a prior.
    """

    readout: Readout
    judged: np.ndarray
    probabilities: np.ndarray
    ridge: float
    sharpness: float | None
    loss: float
    names: np.ndarray | None = None
    drawn_to: np.ndarray | None = None
    scale: float = 0.0


def fit_readout(
    features: np.ndarray,
    targets: np.ndarray,
    groups: Sequence[np.ndarray],
    values: np.ndarray | None = None,
    blocks: int = 1,
    names: np.ndarray | None = None,
    prior: Prior | np.ndarray | None = None,
) -> Fitted:
    """A readout in closed form. The labels' own words are rows of them, unless rows left out are better without; with a
    prior it is drawn towards what that says of such words, not towards zero, as far as rows left out want it.

    Args:
        features: (n, h), n ≥ 2; blocks of as many columns, each of which is to say as much as any other.
        targets: (n, K) distribution over labels, one-hot, times what the row counts (1 where all count alike); of a
            regression over buckets.
        groups: of rows (indices), each predicted without the rows of its group; a row may be in none.
        values: of a regression: that of every bucket, ascending (K,).
        blocks: how many blocks of columns the features have.
        names: features (K, some of the first blocks) of the labels' own words; None of a regression.
        prior: of earlier tasks, which takes `names`; or its weights (K, h), on a lesson's scale. None of a regression.

    Raises:
        InputError: features that are not finite, fewer than two rows, a label without a row, a prior of another base.
    """
    require_finite(features)
    _require_rows(targets, regression=values is not None)
    drawn_to = None if values is not None else weights_of_prior(prior, names, features.shape[1])
    features = signed_roots(features)
    best = _fitted(features, targets, groups, values, blocks, drawn_to)
    if names is not None:
        require_finite(names)
        with_words = with_names(features, targets, signed_roots(names), blocks)
        named = _fitted(*with_words, groups, None, blocks, drawn_to)
        best = replace(named, names=names) if named.loss <= best.loss else best
    return replace(best, readout=replace(best.readout, share=usual_share(len(features))))


def fit_so_far(
    features: np.ndarray,
    targets: np.ndarray,
    names: np.ndarray,
    texts: np.ndarray,
    blocks: int,
    prior: Prior | np.ndarray | None = None,
) -> Fitted:
    """A readout of the rows that are labelled so far, while more texts wait for a label; a label may have no row yet.

    Where the middle is and how long each block is say the texts, which need no label; every label has a row of its
    words. Rows judge ridge, sharpness and prior as soon as there are enough, each predicted without its fold.

    Args:
        features: (n, h), n ≥ 1, of the labelled rows.
        targets: (n, K) one-hot.
        names: features (K, some of the first blocks) of the labels' own words.
        texts: features (m, h), m ≥ 2, of texts of the task, the labelled ones among them.
        blocks, prior: as of `fit_readout`.

    Raises:
        InputError: features that are not finite, fewer than two texts, a prior of another base.
    """
    for given in (features, names, texts):
        require_finite(given)
    if len(texts) < 2:
        raise InputError("readout-needs-two-texts")
    roots = signed_roots(texts)
    words = np.zeros((len(names), features.shape[1]))
    words[:, : names.shape[1]] = names_on_scale(names)
    truth = np.vstack([targets, np.eye(len(names))])
    rows = Rows.around(roots, signed_roots(features), words, truth, blocks)
    groups = [np.arange(fold, len(features), FOLDS) for fold in range(min(FOLDS, len(features)))]
    drawn_to = weights_of_prior(prior, names, features.shape[1])
    return _fitted_to(rows, truth, groups, None, drawn_to)


def lesson_of(features: np.ndarray, targets: np.ndarray, names: np.ndarray, blocks: int) -> Lesson:
    """What a task teaches the prior: the readout of its rows alone, as regular as usual, without words and prior.

    Args:
        features, targets, blocks: as of `fit_readout`.
        names: features (K, 3 blocks) of the labels' own words.

    Raises:
        InputError: as `fit_readout`.
    """
    require_finite(features)
    require_finite(names)
    _require_rows(targets, regression=False)
    rows = Rows.of(signed_roots(features), targets, blocks)
    weights = Path.of(rows.x, rows.targets, rows.counted).weights(USUAL[0])[:, :-1]
    return Lesson(names_on_scale(names), (weights - weights.mean(0)).astype(np.float16), len(features))


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
    drawn_to: np.ndarray | None,
) -> Fitted:
    return _fitted_to(Rows.of(features, targets, blocks), targets, groups, values, drawn_to)


def _fitted_to(
    rows: Rows,
    targets: np.ndarray,
    groups: Sequence[np.ndarray],
    values: np.ndarray | None,
    drawn_to: np.ndarray | None,
) -> Fitted:
    y = rows.targets if values is None else (targets @ values)[:, None]
    centre = np.zeros(y.shape[1]) if values is None else y.mean(0)
    path = Path.of(rows.x, y - centre, rows.counted)
    judged = np.sort(np.concatenate(groups)) if len(groups) else np.zeros(0, dtype=np.int64)
    regression = None if values is None else _Regression(values, float(centre[0]))
    chosen = _chosen(drawn_paths(path, rows.x, drawn_to, judged), groups, judged, targets, regression)
    solved = chosen.path.weights(chosen.ridge)  # (C, h + 1)
    weights, bias = solved[:, :-1], solved[:, -1]
    weights = weights / rows.lengths
    bias = bias - weights @ rows.mean + centre
    weights, bias = chosen.curve.applied_to(weights, bias)
    sharpness = chosen.curve.sharpness if isinstance(chosen.curve, _Softmax) else None
    towards = chosen.path.towards[:, :-1] if chosen.path.scale else None
    return Fitted(
        packed(weights, bias), judged, chosen.probabilities, chosen.ridge, sharpness, chosen.loss,
        drawn_to=towards, scale=chosen.path.scale,
    )  # fmt: skip


def weights_of_prior(prior: Prior | np.ndarray | None, names: np.ndarray | None, width: int) -> np.ndarray | None:
    """(K, h) weights that a prior draws a readout towards. Raises InputError: they are of another base."""
    if isinstance(prior, Prior):
        prior = None if names is None else prior.weights(names_on_scale(names))
    if prior is not None and prior.shape[1] != width:
        raise InputError("prior-width-differs", shape=prior.shape[1], width=width)
    return prior


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
        like: the other, of labels; where it has rows of the labels' own words, so has this one, and it is drawn towards
            the same.
        blocks: of columns, as of `fit_readout`.

    Returns:
        Probabilities (m, K).
    """
    assert like.sharpness is not None
    features = signed_roots(features)
    if like.names is not None:
        features, targets = with_names(features, targets, signed_roots(like.names), blocks)
    rows = Rows.of(features, targets, blocks)
    path = Path.of(rows.x, rows.targets, rows.counted)
    if like.drawn_to is not None:
        path = path.drawn(rows.x, like.drawn_to, 1.0)
    weights = path.weights(like.ridge)
    return softmax(like.sharpness * (rows.seen(signed_roots(asked)) @ weights.T))


def drawn_paths(path: Path, x: np.ndarray, drawn_to: np.ndarray | None, judged: np.ndarray) -> Sequence[Path]:
    """The regressions by how far they are drawn towards the prior: as usual where too few rows judge."""
    if drawn_to is None:
        return [path]
    scales = PRIOR_SCALES[:1] if len(judged) < FEWEST_JUDGING else PRIOR_SCALES
    return [path.drawn(x, drawn_to, scale) if scale else path for scale in scales]


@dataclass(frozen=True)
class _Regression:
    """What a regression predicts: the buckets' values (K,), ascending, and the rows' mean, which scores leave out."""

    values: np.ndarray
    mean: float


@dataclass(frozen=True)
class _Softmax:
    """How scores of labels become probabilities: by a softmax of so many times the scores."""

    sharpness: float

    @property
    def cost(self) -> float:
        """Nats that it costs to differ from the usual one."""
        return SHARPNESS_PRIOR * abs(float(np.log(self.sharpness / USUAL[1])))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(n, K), of scores (n, K)."""
        return softmax(self.sharpness * scores)

    def applied_to(self, weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (K, h) and bias (K,) whose softmax are these probabilities."""
        return self.sharpness * weights, self.sharpness * bias


@dataclass(frozen=True)
class _Normal:
    """How a predicted value becomes probabilities of buckets: by a normal distribution around it."""

    regression: _Regression
    deviation: float
    cost: float = 0.0

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """(n, K), of scores (n, 1): predicted values without the rows' mean."""
        predicted = scores[:, :1] + self.regression.mean
        return softmax(-((predicted - self.regression.values) ** 2) / (2 * self.deviation**2))

    def applied_to(self, weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Weights (K, h) and bias (K,) whose softmax are these probabilities, of those (1, h) and (1,) of the value."""
        slopes = self.regression.values / self.deviation**2
        squares = self.regression.values**2 / (2 * self.deviation**2)
        return np.outer(slopes, weights[0]), slopes * float(bias[0]) - squares


@dataclass(frozen=True)
class _Chosen:
    path: Path
    ridge: float
    curve: _Softmax | _Normal
    probabilities: np.ndarray
    loss: float


def _chosen(
    paths: Sequence[Path],
    groups: Sequence[np.ndarray],
    judged: np.ndarray,
    targets: np.ndarray,
    regression: _Regression | None,
) -> _Chosen:
    """Path, ridge and curve with the least loss on the rows that judge: a ridge, a sharpness or a share of the prior
    that is far from the usual one only where they gain by it."""
    few, usual = len(judged) < FEWEST_JUDGING, paths[0].scale
    options = []
    for path in paths:
        for ridge in (USUAL[0],) if few else RIDGES:
            scores = path.without(groups, ridge)[judged]
            for curve in _curves(path, scores, targets[judged], regression, few=few):
                probabilities = curve.probabilities(scores)
                loss = len(judged) * mean_loss(probabilities, targets[judged]) if len(judged) else 0.0
                loss += RIDGE_PRIOR * abs(np.log(ridge / USUAL[0])) + SCALE_PRIOR * abs(usual - path.scale)
                loss += curve.cost
                options.append(_Chosen(path, ridge, curve, probabilities, loss))
    return min(options, key=lambda option: option.loss)


def _curves(
    path: Path, scores: np.ndarray, targets: np.ndarray, regression: _Regression | None, *, few: bool
) -> Sequence[_Softmax | _Normal]:
    """To choose from: of labels by their sharpness; of a regression the one with the deviation that its errors have."""
    if regression is None:
        return [_Softmax(sharpness) for sharpness in ((USUAL[1],) if few else SHARPNESSES)]
    values = regression.values
    errors = path.y[:, 0] if few else (targets @ values) - scores[:, 0] - regression.mean
    width = float(values[-1] - values[0]) / max(1, len(values) - 1)
    return [_Normal(regression, max(float(np.sqrt((errors**2).mean())), width / 2))]


def packed(weights: np.ndarray, bias: np.ndarray, *, independent: bool = False) -> Readout:
    """A readout of the roots of features with these weights (K, h) and this bias (K,), as it is stored."""
    scale = float(np.abs(weights).max()) or 1.0
    small = (weights / scale).astype(np.float16)
    return Readout(small, scale, bias.astype(np.float32), of_roots=True, independent=independent)


def require_finite(features: np.ndarray) -> None:
    """Raise InputError unless all of these features are finite numbers."""
    if not np.isfinite(features).all():
        raise InputError("features-not-finite")


def _require_rows(targets: np.ndarray, *, regression: bool) -> None:
    if len(targets) < 2:
        raise InputError("readout-needs-two-rows")
    if not regression and (targets.sum(0) <= 0).any():
        raise InputError("label-without-training-row")
