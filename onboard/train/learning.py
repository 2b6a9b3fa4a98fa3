"""The training of the train stage: one embedding of all rows, and embeddings of folds to predict the rows.

For tasks that resemble those of the hypernetwork, z starts close to its goal, and most of what few rows teach beyond
that is noise. For other kinds of tasks it has far to go. So the training takes many steps, and rows that were not
trained on, out of fold or held out, decide which share of the way is kept (`step_length`).

The learning curve (of each fold's halves, or of two halves if rows are held out) has a time budget: a job of 32 rows
may take 30 s on two cores from `submit` to the published version. The probe takes 10 s, check, evaluation and
publishing 4 s, which leaves 16 s. 80 steps with 2 of 32 rows, in two orders, pass 320 rows, the four folds 480, and
their halves 320, of about 32 tokens each; that fits. With longer or more rows, a CPU skips trainings on fewer rows, and
the curve is that of the readout, which costs no training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onboard.contract.report import TrainingFacts
from onboard.data.label_errors import Doubt
from onboard.data.splits import evenly_spaced
from onboard.domain.dataset import Dataset
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.train.crossvalidation import Fold, OutOfFold, fold_of, held_out_scores, in_a_fold, part_rows
from onboard.train.fewshot import Part, Trained, row_passes, train_parts
from onboard.train.halves import SHARE, Halves, two_halves
from onboard.train.learning_curve import MoreRows, affordable_curve, more_rows
from onboard.train.settings import FEWEST_CHOOSING, MOST_CHOOSING, SHARES, FewShotSettings
from onboard.train.step_length import LossByShare
from onboard.train.suspects import suspected_rows


@dataclass(frozen=True)
class Learned:
    """The result of the training.

    Args:
        trained: the embedding as published, with the facts of its training.
        share: share of the way from the start that was kept.
        folds: out-of-fold predictions of all rows; None without a cross-validation.
        chosen_on: number of held-out rows that chose that share; None if the folds did, or none.
        halves: predictions of held-out rows by embeddings of half the rows; None if not requested.
    """

    trained: Trained
    share: float = 1.0
    folds: OutOfFold | None = None
    chosen_on: int | None = None
    halves: Halves | None = None

    def to_document(self) -> TrainingFacts:
        """Return the facts of the training."""
        return self.trained.to_document().model_copy(update={"share": self.share, "chosen_on": self.chosen_on})

    def more_rows(self, targets: np.ndarray) -> MoreRows | None:
        """Estimate the gain from more labeled rows; None if not requested.

        Args:
            targets: (n, K) of the training rows, one-hot.
        """
        if self.halves is not None:
            return self.halves.more_rows(len(targets))
        folds = self.folds
        if folds is None or not folds.has_shares:
            return None
        judged = folds.judged
        return more_rows(
            folds.curve, folds.rows, targets[judged], folds.fold[judged], len(targets), of_readout=folds.of_readout
        )

    def suspects(self, targets: np.ndarray) -> list[Doubt]:
        """Return training rows that look mislabeled; none without a cross-validation. Targets as for `more_rows`."""
        if self.folds is None:
            return []
        return suspected_rows(self.folds.judged, self.folds.scores, targets)


@dataclass(frozen=True)
class Validation:
    """The rows that judge a training.

    Args:
        dataset: dataset with the training rows, for the stratification.
        cross_validated: whether to train folds; there are none with fewer than 8 rows.
        held: held-out rows; without folds, those that are `choosing` decide which share of the way is kept.
        known: whether each training row (n,) trained the start, so that it cannot be predicted as if it were new.
    """

    dataset: Dataset
    cross_validated: bool
    held: LabelledRows | None = None
    known: np.ndarray | None = None


def learn(
    engine: Engine,
    training_set: TrainingSet,
    start: np.ndarray,
    settings: FewShotSettings,
    seed: int,
    validation: Validation,
    execution: Execution = UNWATCHED,
) -> Learned:
    """Train on all rows and, at the same time, on folds if requested.

    Args:
        engine, training_set, start, settings, seed, execution: see `train_parts`.
        validation: the rows that decide which share of the way is kept, and how good the result is.

    Raises:
        See `train_parts`.
    """
    rows, known = training_set.rows, validation.known
    plan = _planned(engine, rows, settings, seed, validation)
    whole, *others = train_parts(engine.rounded(), training_set, start, settings, seed, plan.parts, execution)
    if not plan.folds and plan.judging is None:
        return Learned(whole)

    def scored(z: Sequence[np.ndarray]) -> np.ndarray:
        """Return log-probabilities of the judging rows: those of a fold under its z, held-out rows under
        the only one.
        """
        trie, how = training_set.trie, (execution.before_batch, execution.scored_at_once)
        if plan.judging is None:
            return held_out_scores(engine, rows.ids, plan.folds, z, trie, *how)
        return log_probabilities(engine, plan.judging.ids, z[0], trie, *how)

    fold = fold_of(len(rows.ids), plan.folds)
    targets = rows.targets[in_a_fold(fold)] if plan.judging is None else plan.judging.targets
    share, scores = _bearable(start, others[: len(plan.folds)] or [whole], scored, targets)
    whole, *others = (trained.shortened(start, share) for trained in (whole, *others))
    if plan.judging is None:
        return Learned(whole, share, _out_of_fold(plan.folds, fold, others, scores, _rows(plan.folds, known), scored))
    halves = plan.compared([scored([half.z]) for half in others], scores, targets, known)
    return Learned(whole, share, None, len(targets), halves)


@dataclass(frozen=True)
class _Plan:
    """The trainings that run at the same time: all rows, then folds, then the learning curve.

    Args:
        parts: all trainings.
        folds: folds of the rows; empty if held-out rows judge, or none.
        judging: the held-out rows that judge; None if folds do, or none.
        halves: halves of the rows for the learning curve with held-out rows; they may be left untrained.
    """

    parts: Sequence[Part]
    folds: Sequence[Fold]
    judging: LabelledRows | None
    halves: Sequence[np.ndarray]

    def compared(
        self, by_half: Sequence[np.ndarray], by_all: np.ndarray, targets: np.ndarray, known: np.ndarray | None
    ) -> Halves | None:
        """Compare the halves with the embedding of all rows; None without halves. Arguments as for `Halves.of`."""
        if not self.halves:
            return None
        sizes = {SHARE: _mean_rows(self.halves, known), 1.0: float(sum(map(len, self.halves)))}
        return Halves.of(by_half, by_all, sizes, targets, self.halves)


def _planned(engine: Engine, rows: LabelledRows, settings: FewShotSettings, seed: int, validation: Validation) -> _Plan:
    dataset = validation.dataset
    folds = part_rows(dataset, seed, settings.curve, validation.known) if validation.cross_validated else []
    judging = None if folds else _judging(validation.held)
    halves = two_halves(dataset, seed) if judging is not None and settings.curve else []
    parts = [Part(np.arange(len(rows.ids)), settings.seeds)]
    parts += [Part(fold.kept, settings.fold_seeds) for fold in folds]
    fewer = [*(chosen for fold in folds for chosen in fold.shares.values()), *halves]
    with_curve = [*parts, *(Part(chosen, settings.fold_seeds) for chosen in fewer)]
    affordable = not fewer or (settings.curve_trained and _affordable(engine, rows, with_curve, settings, seed))
    return _Plan(with_curve if affordable else parts, folds, judging, halves)


def _bearable(
    start: np.ndarray,
    trained: Sequence[Trained],
    scored: Callable[[Sequence[np.ndarray]], np.ndarray],
    targets: np.ndarray,
) -> tuple[float, np.ndarray]:
    """Find the share of the way from the start that is best for rows (n) outside the training.

    Returns:
        The share, and the rows' log-probabilities (n, K) after it.
    """
    after = {share: scored([part.shortened(start, share).z for part in trained]) for share in SHARES}
    share = LossByShare.of(scored([start] * len(trained)), after, targets).bearable()
    return share, after[share]


def _affordable(
    engine: Engine, rows: LabelledRows, parts: Sequence[Part], settings: FewShotSettings, seed: int
) -> bool:
    tokens = float(np.mean([len(ids) for ids in rows.ids]))
    return engine.device.type != "cpu" or affordable_curve(row_passes(rows, parts, settings, seed), tokens)


def _out_of_fold(
    parted: Sequence[Fold],
    fold: np.ndarray,
    trained: Sequence[Trained],
    scores: np.ndarray,
    rows: Mapping[float, float],
    scored: Callable[[Sequence[np.ndarray]], np.ndarray],
) -> OutOfFold:
    """Return the predictions of the folds' embeddings (`scores`) and of those of their shares, out of all `trained`."""
    of_folds, of_shares = trained[: len(parted)], trained[len(parted) :]
    shares = list(parted[0].shares) if of_shares else []
    curve = {
        share: scored([part.z for part in of_shares[place :: len(shares)]]) for place, share in enumerate(shares)
    }  # fmt: skip
    curve |= {1.0: scores} if curve else {}
    z = np.stack([part.z for part in of_folds])
    return OutOfFold(fold, scores, curve, rows, z, parted)


def choosing(count: int) -> list[int]:
    """Return the indices of held-out rows that choose something: none of fewer than 16, and at most 256."""
    return evenly_spaced(count, MOST_CHOOSING) if count >= FEWEST_CHOOSING else []


def _judging(held: LabelledRows | None) -> LabelledRows | None:
    """Return the held-out rows that choose; None if there are too few."""
    if held is None or not (chosen := choosing(len(held.ids))):
        return None
    return held.at(chosen)


def _rows(parted: Sequence[Fold], known: np.ndarray | None) -> dict[float, float]:
    """Return the mean number of training rows, by share."""
    trained = [{**fold.shares, 1.0: fold.kept} for fold in parted]
    return {share: _mean_rows([rows[share] for rows in trained], known) for share in trained[0]}


def _mean_rows(trained: Sequence[np.ndarray], known: np.ndarray | None) -> float:
    """Return the mean number of training rows, including those of the start."""
    before = set() if known is None else set(np.flatnonzero(known).tolist())
    return float(np.mean([len(before.union(rows.tolist())) for rows in trained]))
