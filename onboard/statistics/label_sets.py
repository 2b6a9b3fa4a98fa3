"""A readout for sets of labels: an independent score and threshold per label, in closed form.

Ridge regression on 0 and 1 for all labels at once, with the same rows for the labels' words and the same prior as a
readout for classification (`onboard.statistics.readout`). Its out-of-group predictions become probabilities through a
logistic curve with one slope and an offset per label. Each label's threshold maximizes F1; for rare labels, with few
informative rows, it follows the expectation under the probabilities. Thresholds are moved to 1/2, so callers do not
need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.errors import InputError
from onboard.statistics.blocks import with_names
from onboard.statistics.prior import Prior
from onboard.statistics.probabilities import sigmoid
from onboard.statistics.readout import (
    FEWEST_JUDGING,
    PRIOR_SCALES,
    RIDGE_PRIOR,
    RIDGES,
    SCALE_PRIOR,
    USUAL,
    Drawn,
    Fitted,
    drawn_paths,
    folds_so_far,
    packed,
    require_finite,
    rows_so_far,
    signed_roots,
)
from onboard.statistics.ridge import Path, RidgeRows

SLOPES: Final = (2.0, 4.0, 8.0, 16.0, 32.0)
USUAL_SLOPE: Final = 8.0
PLACE_DEVIATION: Final = 1.0  # of a label's offset around that of all labels, in logits
EXPECTED_ROWS: Final = 8.0  # expected answers per label that are added to the observed ones
FEW_THRESHOLD: Final = 0.3  # of the regression's raw scores, if there are too few rows
_STEPS: Final = 6  # of Newton's method
_MOST_CELLS: Final = 50_000  # rows times labels that choose ridge and slope
_MOST_GROUPS: Final = 16  # that are judged by thresholds of the other groups
_TINY: Final = 1e-9


@dataclass(frozen=True)
class Curve:
    """Maps scores of a regression to answers.

    Args:
        slope: slope of the logistic curve.
        places: (L,) offset of each label, in logits.
        thresholds: (L,) logits from which on a label is answered.
    """

    slope: float
    places: np.ndarray
    thresholds: np.ndarray

    def answered(self, scores: np.ndarray) -> np.ndarray:
        """Return answers (n, L): at least 1/2 for answered labels."""
        return sigmoid(self.slope * scores + self.places - self.thresholds)


def fit_sets(
    features: np.ndarray,
    truth: np.ndarray,
    groups: Sequence[np.ndarray],
    blocks: int = 1,
    names: np.ndarray | None = None,
    prior: Prior | np.ndarray | None = None,
    usual_scale: float = PRIOR_SCALES[0],
) -> Fitted:
    """Fit a readout with independent scores in closed form; also predict its rows without their group.

    Args:
        features, groups, blocks, names, prior, usual_scale: see `onboard.statistics.readout.fit_readout`.
        truth: (n, L), 1 if a row has a label, else 0.

    Raises:
        InputError: features are not finite, there are fewer than two rows, or the prior belongs to another base.
    """
    require_finite(features)
    if len(truth) < 2:
        raise InputError("readout-needs-two-rows")
    drawn = Drawn.towards(prior, names, features.shape[1], usual_scale)
    features, counted = signed_roots(features), np.ones(len(truth))
    best = _fitted(features, truth, groups, blocks, drawn)
    if names is not None:
        require_finite(names)
        words = with_names(features, truth, signed_roots(names), blocks, counted)
        named = _fitted(*words, groups, blocks, drawn)
        best = replace(named, names=names) if named.loss <= best.loss else best
    return best


def fit_sets_so_far(
    features: np.ndarray,
    truth: np.ndarray,
    names: np.ndarray,
    texts: np.ndarray,
    blocks: int,
    prior: Prior | np.ndarray | None = None,
    usual_scale: float = PRIOR_SCALES[0],
) -> Fitted:
    """Fit a readout with independent scores to the rows that are labeled so far, while more texts wait for labels.

    Texts without labels define the center and the length of each block; a label may have no row yet, but has a row of
    its words.

    Args:
        features, names, texts, blocks, prior, usual_scale: see `onboard.statistics.readout.fit_so_far`.
        truth: (n, L), n ≥ 1, 1 if a row has a label, else 0.

    Raises:
        InputError: features are not finite, there are fewer than two texts, or the prior belongs to another base.
    """
    rows = rows_so_far(features, truth, names, texts, blocks)
    drawn = Drawn.towards(prior, names, features.shape[1], usual_scale)
    return _fitted_to(rows, rows.targets, folds_so_far(len(features)), drawn)


def _fitted(
    features: np.ndarray,
    truth: np.ndarray,
    groups: Sequence[np.ndarray],
    blocks: int,
    drawn: Drawn | None,
) -> Fitted:
    return _fitted_to(RidgeRows.of_sets(features, truth, blocks), truth, groups, drawn)


def _fitted_to(rows: RidgeRows, truth: np.ndarray, groups: Sequence[np.ndarray], drawn: Drawn | None) -> Fitted:
    path = Path.of(rows.x, rows.targets, rows.counted)
    judged = np.sort(np.concatenate(groups)) if len(groups) else np.zeros(0, dtype=np.int64)
    right = truth[judged].astype(np.float64)
    few = len(judged) < FEWEST_JUDGING
    paths = drawn_paths(path, rows.x, drawn, judged)
    options = [
        (_cost(one, ridge, paths[0].scale, groups, judged, right, few=few), one, ridge)
        for one in paths
        for ridge in ((USUAL[0],) if few else RIDGES)
    ]
    loss, chosen, ridge = min(options, key=lambda option: option[0])
    scores = _scores(chosen, groups, judged, ridge)
    curve = _usual_curve(truth.shape[1]) if few else fit_curve(scores, right)
    solved = chosen.weights(ridge)  # (L, h + 1)
    weights = solved[:, :-1] / rows.lengths
    bias = solved[:, -1] - weights @ rows.mean
    readout = packed(
        curve.slope * weights, curve.slope * bias + curve.places - curve.thresholds, independent=True
    )  # fmt: skip
    answered = _answered_without(scores, right, groups, judged, curve)
    towards = chosen.towards[:, :-1] if chosen.scale else None
    return Fitted(readout, judged, answered, ridge, curve.slope, loss, drawn_to=towards, scale=chosen.scale)


def _cost(
    path: Path,
    ridge: float,
    usual_scale: float,
    groups: Sequence[np.ndarray],
    judged: np.ndarray,
    right: np.ndarray,
    *,
    few: bool,
) -> float:
    """Return the loss of the judging rows in nats, plus a penalty for an unusual ridge or scale."""
    cost = RIDGE_PRIOR * abs(float(np.log(ridge / USUAL[0]))) + SCALE_PRIOR * abs(usual_scale - path.scale)
    if few:
        return cost
    rows = _some_rows(len(judged), right.shape[1])
    scores = _scores(path, groups, judged, ridge)
    _, _, loss = _probable(scores[rows], right[rows])
    return cost + loss * len(judged) / len(rows)


def _scores(path: Path, groups: Sequence[np.ndarray], judged: np.ndarray, ridge: float) -> np.ndarray:
    """Predict the judging rows (m, L), each without its group."""
    single = all(len(group) == 1 for group in groups)
    scores: np.ndarray = (path.without_each(ridge) if single else path.without(groups, ridge))[judged]
    return scores


def _some_rows(count: int, labels: int) -> np.ndarray:
    """Return evenly spaced indices of rows, few enough to choose quickly."""
    most = max(64, _MOST_CELLS // max(1, labels))
    return np.arange(count) if count <= most else np.arange(most) * count // most


def _usual_curve(labels: int) -> Curve:
    return Curve(USUAL_SLOPE, np.full(labels, -USUAL_SLOPE * FEW_THRESHOLD), np.zeros(labels))


def fit_curve(scores: np.ndarray, right: np.ndarray) -> Curve:
    """Fit the curve to rows outside the regression.

    Args:
        scores: (m, L) of a regression.
        right: (m, L) of 0 and 1.
    """
    slope, places, _ = _probable(scores, right)
    return Curve(slope, places, _thresholds(sigmoid(slope * scores + places), right))


def _probable(scores: np.ndarray, right: np.ndarray) -> tuple[float, np.ndarray, float]:
    """Return the most likely slope and offsets, and the total loss in nats."""
    fitted = [(slope, *_places(slope * scores, right)) for slope in SLOPES]
    return min(fitted, key=lambda one: one[2])


def _places(scores: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, float]:
    """Return each label's offset, regularized towards those of the others, and the loss."""
    common = np.zeros(1)
    for _ in range(_STEPS):
        p = sigmoid(scores + common)
        common = common + np.clip((right - p).sum() / max(float((p * (1 - p)).sum()), _TINY), -2, 2)
    places = np.full(scores.shape[1], float(common[0]))
    held = 1 / PLACE_DEVIATION**2
    for _ in range(_STEPS):
        p = sigmoid(scores + places)
        gradient = (right - p).sum(0) - held * (places - common)
        places = places + np.clip(gradient / ((p * (1 - p)).sum(0) + held), -2, 2)
    p = np.clip(sigmoid(scores + places), _TINY, 1 - _TINY)
    loss = -float((right * np.log(p) + (1 - right) * np.log(1 - p)).sum())
    return places, loss + 0.5 * held * float(((places - common) ** 2).sum())


def _thresholds(probabilities: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return each label's threshold in logits (L,), which maximizes F1 on its rows plus rows with expected answers."""
    return np.array([_threshold(of_label, true) for of_label, true in zip(probabilities.T, right.T, strict=True)])


def _threshold(probabilities: np.ndarray, right: np.ndarray) -> float:
    order = np.argsort(-probabilities, kind="stable")
    p, y = probabilities[order], right[order]
    weight = EXPECTED_ROWS / (EXPECTED_ROWS + float(y.sum()))  # weight of expected rows
    mixed = weight * p + (1 - weight) * y
    answered = np.arange(1, len(p) + 1)
    f1 = 2 * np.cumsum(mixed) / (answered + mixed.sum())
    best = int(np.argmax(f1))
    after = p[best + 1] if best + 1 < len(p) else p[best] / 2
    between = np.clip((p[best] + after) / 2, _TINY, 1 - _TINY)
    return float(np.log(between / (1 - between)))


def _answered_without(
    scores: np.ndarray, right: np.ndarray, groups: Sequence[np.ndarray], judged: np.ndarray, curve: Curve
) -> np.ndarray:
    """Return answers for rows without their group (m, L); with few groups, thresholds come from the other groups."""
    if len(judged) < FEWEST_JUDGING or not 1 < len(groups) <= _MOST_GROUPS:
        return curve.answered(scores)
    answered = np.zeros_like(scores)
    for group in groups:
        own = np.isin(judged, group)
        if (~own).sum() < FEWEST_JUDGING // 2:
            answered[own] = curve.answered(scores[own])
        else:
            answered[own] = fit_curve(scores[~own], right[~own]).answered(scores[own])
    return answered
