"""Predictions of embedding and readout combined, for the learning curve and for suspicious labels.

Readouts of fewer rows are regularized like that of all rows. They need no training and contribute most of the answer,
so the learning curve is that of readouts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from onboard.pipeline.evidence import held_rows
from onboard.pipeline.material import Workbench
from onboard.pipeline.readout import blocks_of, drawn
from onboard.statistics.probabilities import blend
from onboard.statistics.readout import Fitted, answers_after
from onboard.statistics.share import choose_share
from onboard.train.crossvalidation import OutOfFold, log_of
from onboard.train.halves import SHARE, Halves
from onboard.train.learning import Learned


def as_published(bench: Workbench, learned: Learned, fitted: Fitted, checkpoint: Callable[[], None]) -> Learned:
    """Add the readout to the out-of-fold answers of an embedding (classification only).

    Args:
        bench: the job's material.
        learned: the embedding with its folds or the trainings on halves of its rows.
        fitted: the readout.
        checkpoint: stops the work.
    """
    places = drawn(bench)
    rows = [bench.dataset.train[place] for place in places]
    maker = _Readouts(bench, fitted, places, bench.own_features(rows, checkpoint), bench.weighted(rows))
    if learned.folds is not None:
        return replace(learned, folds=_folds(learned.folds, maker))
    if learned.halves is not None:
        held = bench.own_features(held_rows(bench), checkpoint)
        return replace(learned, halves=_halves(learned.halves, held, maker))
    return learned


@dataclass(frozen=True)
class _Readouts:
    """Fits readouts on parts of the training rows.

    Args:
        bench: the job's material.
        like: the readout of all rows.
        places: indices of the training rows that it was fitted on, ascending.
        features, targets: features and targets of these rows.
    """

    bench: Workbench
    like: Fitted
    places: np.ndarray
    features: np.ndarray
    targets: np.ndarray

    def answers(self, trained_on: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """Return probabilities (m, K) of features (m, h) under a readout of these training rows (indices)."""
        own = np.flatnonzero(np.isin(self.places, trained_on))
        return answers_after(self.features[own], self.targets[own], asked, self.like, blocks_of(self.bench, asked))


def _folds(folds: OutOfFold, maker: _Readouts) -> OutOfFold:
    targets = maker.targets[folds.judged]
    share = choose_share(np.exp(folds.scores), maker.like.probabilities, targets, maker.like.readout.share)
    published = replace(folds, scores=_blended(folds.scores, maker.like.probabilities, share))
    if not folds.has_shares:
        return published
    readouts = {part: _of_part(folds, part, maker)[folds.judged] for part in folds.parts[0].shares}
    curve = _curve({**readouts, 1.0: maker.like.probabilities}, share)
    return replace(published, curve=curve, of_readout=True)


def _of_part(folds: OutOfFold, part: float, maker: _Readouts) -> np.ndarray:
    """Return out-of-fold probabilities (n, K) of readouts fitted on this share of the other folds' rows."""
    answers = np.zeros_like(maker.targets, dtype=np.float64)
    for fold in folds.parts:
        answers[fold.held] = maker.answers(fold.shares[part], maker.features[fold.held])
    return answers


def _halves(halves: Halves, held: np.ndarray, maker: _Readouts) -> Halves:
    of_all = maker.like.readout.probabilities(held)
    share = choose_share(np.exp(halves.by_all), of_all, halves.targets, maker.like.readout.share)
    readouts = {SHARE: halves.in_turn([maker.answers(rows, held) for rows in halves.parts]), 1.0: of_all}
    curve = _curve(readouts, share)
    by_half, by_all = curve.get(SHARE), curve.get(1.0, halves.by_all)
    return replace(halves, by_half=by_half, by_all=by_all, of_readout=True)


def _curve(readouts: Mapping[float, np.ndarray], share: float) -> dict[float, np.ndarray]:
    """Return log-probabilities (m, K) of readouts by share of the rows; empty without a readout."""
    return {part: log_of(answers) for part, answers in readouts.items()} if share else {}


def _blended(scores: np.ndarray, readout: np.ndarray, share: float) -> np.ndarray:
    """Return log-probabilities (m, K) of both combined."""
    return log_of(blend(np.exp(scores), readout, share)) if share else scores
