"""A readout: predict labels from the features of texts, in closed form, without training or gradients.

It is a ridge regression on the labels (K numbers, or one value) of signed square roots of the features, so that a few
large ones do not dominate (power normalization: Perronnin, Sanchez and Mensink 2010, section 3.1). Predictions for rows
without themselves or their whole fold follow from one decomposition (Allen's PRESS, by blocks), so regularization and
temperature are chosen out of sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from onboard.errors import InputError
from onboard.statistics.blocks import BLOCKS, with_names
from onboard.statistics.prior import Lesson, Prior, names_on_scale
from onboard.statistics.probabilities import blend, mean_loss, sigmoid, softmax
from onboard.statistics.ridge import Path, RidgeRows
from onboard.statistics.share import usual_share

RIDGES: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # relative to the mean squared length of the rows
SHARPNESSES: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # inverse temperatures of the scores
SHARPNESS_PRIOR: Final = 1.0  # penalty in nats for a sharpness e times as large or small as the usual one
RIDGE_PRIOR: Final = 1.0  # penalty in nats for a ridge e times as large or small as the usual one, from held-out tasks
USUAL: Final = (1.0, 4.0)  # ridge and sharpness if there are too few rows to choose
FEWEST_JUDGING: Final = 8
FOLDS: Final = 10  # of the rows that are labeled so far
PRIOR_SCALES: Final = (0.75, 1.0, 0.5, 0.25, 0.0)  # candidate strengths of the prior, the usual one first
SILENT_SCALE: Final = 0.0  # the usual strength for labels whose words say nothing, such as codes
SCALE_PRIOR: Final = 2.0  # penalty in nats for a difference of one, from held-out tasks, as is the usual scale
_BEFORE: Final = (0, 1, 3, 4)  # blocks that readouts of unrooted features used for pairs


@dataclass(frozen=True)
class Readout:
    """Linear scores of K labels or buckets; their softmax is blended with an embedding's answer.

    Args:
        weights: (K, h) float16, to be multiplied by `scale`.
        bias: (K,) float32.
        share: its share of the answer; the embedding has the rest.
        of_roots: whether it takes the signed roots of features; older readouts take the features themselves.
        independent: whether each label has an independent score, for tasks with several labels per text; otherwise they
            sum to one.
    """

    weights: np.ndarray
    scale: float
    bias: np.ndarray
    share: float = 1.0
    of_roots: bool = False
    independent: bool = False

    def columns(self, width: int) -> np.ndarray:
        """Return the columns of all blocks that it takes: the first ones, or the blocks that older readouts of pairs
        used.

        Raises:
            InputError: there are fewer columns.
        """
        own = self.weights.shape[1]
        if width < own:
            raise InputError("readout-width-differs", own=own, width=width)
        if not self.of_roots and own * BLOCKS == width * len(_BEFORE):
            return np.arange(width).reshape(BLOCKS, -1)[list(_BEFORE)].ravel()
        return np.arange(own)

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Return probabilities (n, K) float64, or independent scores, from features of all blocks or of those it was
        fitted on.

        Raises:
            InputError: there are fewer features than it takes, or some are not finite.
        """
        features = features[:, self.columns(features.shape[1])].astype(np.float64)
        require_finite(features)
        seen = signed_roots(features) if self.of_roots else features
        scores = seen @ (self.weights.astype(np.float64) * self.scale).T + self.bias
        return sigmoid(scores) if self.independent else softmax(scores)

    def beside(self, embedding: np.ndarray, features: np.ndarray) -> np.ndarray:
        """Blend its answers with the embedding's probabilities (n, K); features as for `probabilities`."""
        return blend(embedding, self.probabilities(features), self.share)

    def of_labels(self, order: Sequence[int]) -> Readout:
        """Return the readout with its labels in another order."""
        places = list(order)
        return replace(self, weights=self.weights[places], bias=self.bias[places])


@dataclass(frozen=True)
class Drawn:
    """The prior of a readout.

    Args:
        weights: (K, h) that the readout is drawn towards, on a lesson's scale.
        usual_scale: strength of the prior unless rows prefer another one.
    """

    weights: np.ndarray
    usual_scale: float

    @classmethod
    def towards(
        cls, prior: Prior | np.ndarray | None, names: np.ndarray | None, width: int, usual_scale: float
    ) -> Self | None:
        """Return a readout's prior; None without one. Raises InputError: it belongs to another base."""
        weights = weights_of_prior(prior, names, width)
        return None if weights is None else cls(weights, usual_scale)


@dataclass(frozen=True)
class Fitted:
    """A readout fitted on n rows.

    Args:
        readout: fitted on all rows.
        judged: indices of the rows that are in a group (m,), ascending.
        probabilities: (m, K) of these rows, each predicted without its group.
        sharpness: the sharpness that these rows chose; None for a regression.
        loss: total loss of these rows in nats, plus penalties.
        names: (K, h) of the labels' words, one row per label; None if left-out rows are better without them.
        drawn_to: (K, h) prior weights on the rows' scale; None without a prior, or if left-out rows are better without
            it.
        scale: scale of the prior's weights that these rows chose; 0 without a prior.
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
    usual_scale: float = PRIOR_SCALES[0],
) -> Fitted:
    """Fit a readout in closed form.

    The labels' words are additional rows, unless left-out rows are better without them. With a prior, the weights are
    regularized towards it instead of zero, as far as left-out rows benefit.

    Args:
        features: (n, h), n ≥ 2, in blocks of equal size and weight.
        targets: (n, K) distribution over labels, one-hot, times the weight of the row; over buckets for a regression.
        groups: groups of rows (indices); each row is predicted without its group, and may be in none.
        values: for a regression, the value of every bucket, ascending (K,).
        names: features (K, some of the first blocks) of the labels' words; None for a regression.
        prior: prior of earlier tasks, which takes `names`, or its weights (K, h) on a lesson's scale. None for a
            regression.
        usual_scale: strength of the prior unless rows prefer another one; `SILENT_SCALE` for labels that say nothing.

    Raises:
        InputError: features are not finite, there are fewer than two rows, a label has no row, or the prior belongs to
            another base.
    """
    require_finite(features)
    _require_rows(targets, regression=values is not None)
    drawn = None if values is not None else Drawn.towards(prior, names, features.shape[1], usual_scale)
    features = signed_roots(features)
    best = _fitted(features, targets, groups, values, blocks, drawn)
    if names is not None:
        require_finite(names)
        with_words = with_names(features, targets, signed_roots(names), blocks)
        named = _fitted(*with_words, groups, None, blocks, drawn)
        best = replace(named, names=names) if named.loss <= best.loss else best
    return replace(best, readout=replace(best.readout, share=usual_share(len(features))))


def fit_so_far(
    features: np.ndarray,
    targets: np.ndarray,
    names: np.ndarray,
    texts: np.ndarray,
    blocks: int,
    prior: Prior | np.ndarray | None = None,
    usual_scale: float = PRIOR_SCALES[0],
) -> Fitted:
    """A readout of the rows that are labeled so far, while more texts wait for a label; a label may have no row yet.

    Where the middle is and how long each block is say the texts, which need no label; every label has a row of its
    words. Rows judge ridge, sharpness and prior as soon as there are enough, each predicted without its fold.

    Args:
        features: (n, h), n ≥ 1, of the labeled rows.
        targets: (n, K) one-hot.
        names: features (K, some of the first blocks) of the labels' own words.
        texts: features (m, h), m ≥ 2, of texts of the task, the labeled ones among them.
        blocks, prior, usual_scale: as of `fit_readout`.

    Raises:
        InputError: features that are not finite, fewer than two texts, a prior of another base.
    """
    rows = rows_so_far(features, targets, names, texts, blocks)
    drawn = Drawn.towards(prior, names, features.shape[1], usual_scale)
    return _fitted_to(rows, rows.targets, folds_so_far(len(features)), None, drawn)


def folds_so_far(rows: int) -> list[np.ndarray]:
    """Return the folds in which the rows that are labeled so far are predicted: every `FOLDS`-th row."""
    return [np.arange(fold, rows, FOLDS) for fold in range(min(FOLDS, rows))]


def rows_so_far(
    features: np.ndarray, targets: np.ndarray, names: np.ndarray, texts: np.ndarray, blocks: int
) -> RidgeRows:
    """Return the labeled rows followed by a row of each label's words, around the mean of all texts.

    Arguments and errors as for `fit_so_far`.
    """
    for given in (features, names, texts):
        require_finite(given)
    if len(texts) < 2:
        raise InputError("readout-needs-two-texts")
    words = np.zeros((len(names), features.shape[1]))
    words[:, : names.shape[1]] = names_on_scale(names)
    truth = np.vstack([targets, np.eye(len(names))])
    return RidgeRows.around(signed_roots(texts), signed_roots(features), words, truth, blocks)


def lesson_of(features: np.ndarray, targets: np.ndarray, names: np.ndarray, blocks: int) -> Lesson:
    """Return the task's lesson: a readout of its rows with the usual regularization, without words and prior.

    Args:
        features, targets, blocks: see `fit_readout`.
        names: features (K, 3 blocks) of the labels' words.

    Raises:
        InputError: see `fit_readout`.
    """
    require_finite(features)
    require_finite(names)
    _require_rows(targets, regression=False)
    rows = RidgeRows.of(signed_roots(features), targets, blocks)
    weights = Path.of(rows.x, rows.targets, rows.counted).weights(USUAL[0])[:, :-1]
    return Lesson(names_on_scale(names), (weights - weights.mean(0)).astype(np.float16), len(features))


def signed_roots(features: np.ndarray) -> np.ndarray:
    """Return sign(x)·√|x| of every feature, float64."""
    roots: np.ndarray = np.sign(features) * np.sqrt(np.abs(features, dtype=np.float64))
    return roots


def _fitted(
    features: np.ndarray,
    targets: np.ndarray,
    groups: Sequence[np.ndarray],
    values: np.ndarray | None,
    blocks: int,
    drawn: Drawn | None,
) -> Fitted:
    return _fitted_to(RidgeRows.of(features, targets, blocks), targets, groups, values, drawn)


def _fitted_to(
    rows: RidgeRows,
    targets: np.ndarray,
    groups: Sequence[np.ndarray],
    values: np.ndarray | None,
    drawn: Drawn | None,
) -> Fitted:
    y = rows.targets if values is None else (targets @ values)[:, None]
    centre = np.zeros(y.shape[1]) if values is None else y.mean(0)
    path = Path.of(rows.x, y - centre, rows.counted)
    judged = np.sort(np.concatenate(groups)) if len(groups) else np.zeros(0, dtype=np.int64)
    regression = None if values is None else _Regression(values, float(centre[0]))
    chosen = _chosen(drawn_paths(path, rows.x, drawn, judged), groups, judged, targets, regression)
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
    """Return the prior's weights (K, h) for a readout. Raises InputError: they belong to another base."""
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
    """Predict with a readout of fewer rows, with the regularization and sharpness of another readout of the task.

    Args:
        features, targets: (n, h) and (n, K) of its rows, see `fit_readout`; a label may have none.
        asked: features (m, h) of other rows.
        like: the other readout, of a classification; its rows of the labels' words and its prior are used too.
        blocks: number of blocks, see `fit_readout`.

    Returns:
        Probabilities (m, K).
    """
    assert like.sharpness is not None
    features = signed_roots(features)
    if like.names is not None:
        features, targets = with_names(features, targets, signed_roots(like.names), blocks)
    rows = RidgeRows.of(features, targets, blocks)
    path = Path.of(rows.x, rows.targets, rows.counted)
    if like.drawn_to is not None:
        path = path.drawn(rows.x, like.drawn_to, 1.0)
    weights = path.weights(like.ridge)
    return softmax(like.sharpness * (rows.seen(signed_roots(asked)) @ weights.T))


def drawn_paths(path: Path, x: np.ndarray, drawn: Drawn | None, judged: np.ndarray) -> Sequence[Path]:
    """Return regressions by strength of the prior, the usual one first; with too few rows to choose, no other."""
    if drawn is None:
        return [path]
    others = () if len(judged) < FEWEST_JUDGING else (scale for scale in PRIOR_SCALES if scale != drawn.usual_scale)
    return [path.drawn(x, drawn.weights, scale) if scale else path for scale in (drawn.usual_scale, *others)]


@dataclass(frozen=True)
class _Regression:
    """A regression task: the buckets' values (K,), ascending, and the rows' mean, which is subtracted from scores."""

    values: np.ndarray
    mean: float


@dataclass(frozen=True)
class _Softmax:
    """Converts scores of labels to probabilities: a softmax of `sharpness` times the scores."""

    sharpness: float

    @property
    def cost(self) -> float:
        """Penalty in nats for an unusual sharpness."""
        return SHARPNESS_PRIOR * abs(float(np.log(self.sharpness / USUAL[1])))

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities (n, K) of scores (n, K)."""
        return softmax(self.sharpness * scores)

    def applied_to(self, weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (K, h) and bias (K,) with these probabilities as their softmax."""
        return self.sharpness * weights, self.sharpness * bias


@dataclass(frozen=True)
class _Normal:
    """Converts a predicted value to probabilities of buckets: a normal distribution around it."""

    regression: _Regression
    deviation: float
    cost: float = 0.0

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Return probabilities (n, K) of scores (n, 1): predicted values minus the rows' mean."""
        predicted = scores[:, :1] + self.regression.mean
        return softmax(-((predicted - self.regression.values) ** 2) / (2 * self.deviation**2))

    def applied_to(self, weights: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights (K, h) and bias (K,) with these probabilities as their softmax, from those (1, h), (1,) of the
        value.
        """
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
    """Return path, ridge and curve with the smallest loss on the judging rows, including penalties for
    unusual values.
    """
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
    """Return the candidate curves: one per sharpness, or for a regression the one with the deviation of its errors."""
    if regression is None:
        return [_Softmax(sharpness) for sharpness in ((USUAL[1],) if few else SHARPNESSES)]
    values = regression.values
    errors = path.y[:, 0] if few else (targets @ values) - scores[:, 0] - regression.mean
    width = float(values[-1] - values[0]) / max(1, len(values) - 1)
    return [_Normal(regression, max(float(np.sqrt((errors**2).mean())), width / 2))]


def packed(weights: np.ndarray, bias: np.ndarray, *, independent: bool = False) -> Readout:
    """Return a readout of rooted features with these weights (K, h) and this bias (K,), as stored."""
    scale = float(np.abs(weights).max()) or 1.0
    small = (weights / scale).astype(np.float16)
    return Readout(small, scale, bias.astype(np.float32), of_roots=True, independent=independent)


def require_finite(features: np.ndarray) -> None:
    """Raise InputError unless all features are finite."""
    if not np.isfinite(features).all():
        raise InputError("features-not-finite")


def _require_rows(targets: np.ndarray, *, regression: bool) -> None:
    if len(targets) < 2:
        raise InputError("readout-needs-two-rows")
    if not regression and (targets.sum(0) <= 0).any():
        raise InputError("label-without-training-row")
