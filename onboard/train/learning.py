"""The train stage as a whole: one embedding of all rows, and those of the folds beside it, which predict them.

Where the hypernetwork has seen the like of a task, z starts next to where it should end, and most of what few rows
teach beyond that is chance; on another kind of task it has far to go. So training goes far, and rows that were not
trained on, out of fold or held out, say how much of the way is taken (`step_length`).

The learning curve is wanted (of each fold's halves, or of two halves where rows are held out), but not at any price:
from `submit` to the published version a job of 32 rows may take 30 s on two cores, the probe 10 of them, check,
evaluation and publishing 4; what is left is 16 s. 80 steps of 2 of 32 rows, in two orders, pass 320 rows, the four
folds 480, and their halves 320: of some 32 tokens each that is what there is time for. Of longer rows, and of more, a
CPU does not train on fewer rows, and the curve is that of the readout, which costs no training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from onboard.data.label_errors import Doubt
from onboard.data.splits import evenly_spaced
from onboard.domain.dataset import Dataset
from onboard.domain.report import TrainingJson
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
    """What came of the training.

    Args:
        trained: the embedding, as it is published, and how its training went.
        share: of the way from the start that was taken.
        folds: predictions of all rows by embeddings that were trained without them; None without a cross-validation.
        chosen_on: how many held-out rows chose that share; None where none did, or the folds.
        halves: what embeddings of half of the rows make of the held-out ones; None where that was not asked.
    """

    trained: Trained
    share: float = 1.0
    folds: OutOfFold | None = None
    chosen_on: int | None = None
    halves: Halves | None = None

    def to_json(self) -> TrainingJson:
        """The course of the training (without z) as a JSON-compatible document."""
        return {**self.trained.to_json(), "share": self.share, "chosen_on": self.chosen_on}

    def more_rows(self, targets: np.ndarray) -> MoreRows | None:
        """What more labelled rows would buy; None where that was not asked.

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
        """Training rows that look mislabelled; none without a cross-validation. Targets as of `more_rows`."""
        if self.folds is None:
            return []
        return suspected_rows(self.folds.judged, self.folds.scores, targets)


@dataclass(frozen=True)
class Validation:
    """What judges a training.

    Args:
        dataset: whose training rows are trained on, for the stratification.
        cross_validated: whether to train folds; with fewer than 8 rows there are none all the same.
        held: held-out rows; without folds they choose how much of the way is taken, as far as they are `choosing`.
        known: whether each training row (n,) has trained the start, so that nothing predicts it as if it were new.
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
    """Train on all rows and, side by side, on folds of them where these are wanted.

    Args:
        engine, training_set, start, settings, seed, execution: as of `train_parts`.
        validation: what says how much of the way is taken, and how good that is.

    Raises:
        as `train_parts`.
    """
    rows, known = training_set.rows, validation.known
    plan = _planned(engine, rows, settings, seed, validation)
    whole, *others = train_parts(engine.rounded(), training_set, start, settings, seed, plan.parts, execution)
    if not plan.folds and plan.judging is None:
        return Learned(whole)

    def scored(z: Sequence[np.ndarray]) -> np.ndarray:
        """Log-probabilities of the rows that judge: of a fold by its z, of held-out rows by the only one."""
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
    """What is trained side by side: all rows, then folds, then the learning curve.

    Args:
        parts: all of it.
        folds: of the rows; none where they are judged by others, or by none.
        judging: the held-out rows that judge; None where folds do, or nothing does.
        halves: of the rows, for the curve where rows are held out; they may not be trained on.
    """

    parts: Sequence[Part]
    folds: Sequence[Fold]
    judging: LabelledRows | None
    halves: Sequence[np.ndarray]

    def compared(
        self, by_half: Sequence[np.ndarray], by_all: np.ndarray, targets: np.ndarray, known: np.ndarray | None
    ) -> Halves | None:
        """The halves beside the embedding of all rows; None without any. Arguments as of `Halves.of`."""
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
    """How much of the way from the start is borne by rows (n) that these have not been trained on.

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
    """Predictions by the embeddings of the folds (`scores`), and of their shares; `trained` are those of all."""
    of_folds, of_shares = trained[: len(parted)], trained[len(parted) :]
    shares = list(parted[0].shares) if of_shares else []
    curve = {
        share: scored([part.z for part in of_shares[place :: len(shares)]]) for place, share in enumerate(shares)
    }  # fmt: skip
    curve |= {1.0: scores} if curve else {}
    z = np.stack([part.z for part in of_folds])
    return OutOfFold(fold, scores, curve, rows, z, parted)


def choosing(count: int) -> list[int]:
    """Places of those of so many held-out rows that choose something: none of fewer than 16, and at most 256."""
    return evenly_spaced(count, MOST_CHOOSING) if count >= FEWEST_CHOOSING else []


def _judging(held: LabelledRows | None) -> LabelledRows | None:
    """The held-out rows that choose; None where they are too few."""
    if held is None or not (chosen := choosing(len(held.ids))):
        return None
    return held.at(chosen)


def _rows(parted: Sequence[Fold], known: np.ndarray | None) -> dict[float, float]:
    """Mean number of rows that were trained on, by share."""
    trained = [{**fold.shares, 1.0: fold.kept} for fold in parted]
    return {share: _mean_rows([rows[share] for rows in trained], known) for share in trained[0]}


def _mean_rows(trained: Sequence[np.ndarray], known: np.ndarray | None) -> float:
    """Of some trainings; rows that the start was trained on are counted, too."""
    before = set() if known is None else set(np.flatnonzero(known).tolist())
    return float(np.mean([len(before.union(rows.tolist())) for rows in trained]))
