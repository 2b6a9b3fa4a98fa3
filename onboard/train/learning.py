"""The train stage as a whole: one embedding of all rows, and those of the folds beside it, which predict them.

Where the hypernetwork has seen the like of a task, z starts next to where it should end, and most of what few rows
teach beyond that is chance; on another kind of task it has far to go. So training goes far, and rows that were not
trained on, out of fold or held out, say how much of the way is taken (`step_length`).

The learning curve is wanted (of each fold's halves, or of two halves where rows are held out), but not at any price:
from `submit` to the published version a job of 32 rows may take 45 s on two cores, the probe 15 of them, start, check,
evaluation and publishing 7; what is left is 23 s. 80 steps of 2 of 32 rows, in two orders, pass 320 rows, the four
folds 480, and their halves 320: of some 58 tokens each that is what there is time for. Of longer rows, and of more, the
curve is left out on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from onboard.data.estimate import affordable_curve
from onboard.data.splits import evenly_spaced
from onboard.domain.dataset import Dataset
from onboard.model.batch import LabelledRows
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.memory import RowsAtOnce
from onboard.model.scoring import LabelTrie
from onboard.train.crossvalidation import IN_NONE, Fold, OutOfFold, held_out_scores, in_a_fold, part_rows
from onboard.train.fewshot import FewShotSettings, Part, Trained, row_passes, train_parts
from onboard.train.halves import SHARE, Halves, two_halves
from onboard.train.learning_curve import MoreRows, more_rows
from onboard.train.step_length import SHARES, LossByShare
from onboard.train.suspects import Suspect, suspected_errors

FEWEST_CHOOSING: Final = 16  # held-out rows below which nothing is chosen on them
MOST_CHOOSING: Final = 256
_NO_TIME: Final = "Training on fewer rows as well would take too long here."


@dataclass(frozen=True)
class Learned:
    """What came of the training.

    Args:
        trained: the embedding, as it is published, and how its training went.
        share: of the way from the start that was taken.
        folds: predictions of all rows by embeddings that were trained without them; None without a cross-validation.
        chosen_on: how many held-out rows chose that share; None where none did, or the folds.
        halves: what embeddings of half of the rows make of the held-out ones; None where that was not asked.
        curve_left_out: whether the learning curve was wanted and would have taken too long.
    """

    trained: Trained
    share: float = 1.0
    folds: OutOfFold | None = None
    chosen_on: int | None = None
    halves: Halves | None = None
    curve_left_out: bool = False

    def to_json(self) -> dict[str, Any]:
        """The course of the training (without z) as a JSON-compatible document."""
        return {**self.trained.to_json(), "share": self.share, "chosen_on": self.chosen_on}

    def more_rows(self, targets: np.ndarray) -> MoreRows | None:
        """What more labelled rows would buy; None where that was not asked.

        Args:
            targets: (n, K) of the training rows, one-hot.
        """
        if self.halves is not None:
            return self.halves.more_rows(len(targets))
        if self.folds is None or not self.folds.curve:
            return MoreRows((), reason=_NO_TIME) if self.curve_left_out else None
        scores, judged = {**self.folds.curve, 1.0: self.folds.scores}, self.folds.judged
        return more_rows(scores, self.folds.rows, targets[judged], self.folds.fold[judged], len(targets))

    def suspects(self, targets: np.ndarray) -> list[Suspect]:
        """Training rows that look mislabelled; none without a cross-validation. Targets as of `more_rows`."""
        if self.folds is None:
            return []
        judged = self.folds.judged
        suspects = suspected_errors(self.folds.scores, targets[judged])
        return [replace(suspect, row=int(judged[suspect.row])) for suspect in suspects]

    def folds_to_json(self) -> dict[str, Any] | None:
        """Every row's fold, the probabilities of those in one, and each fold's z; None without a cross-validation."""
        if self.folds is None:
            return None
        return {
            "fold": self.folds.fold.tolist(), "probabilities": np.exp(self.folds.scores).tolist(),
            "z": self.folds.z.tolist(),
        }  # fmt: skip


def learn(
    engine: Engine,
    start: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    settings: FewShotSettings,
    seed: int,
    dataset: Dataset,
    *,
    cross_validated: bool,
    held: LabelledRows | None = None,
    known: np.ndarray | None = None,
    on_step: Callable[[int, float], None] = lambda *_: None,
    before_batch: Callable[[], None] = lambda: None,
    at_once: RowsAtOnce | None = None,
    scored_at_once: RowsAtOnce | None = None,
) -> Learned:
    """Train on all rows and, side by side, on folds of them where these are wanted.

    Args:
        engine, start, rows, trie, settings, seed, on_step, at_once: as of `train_parts`.
        dataset: whose training rows `rows` are, for the stratification.
        cross_validated: whether to train folds; with fewer than 8 rows there are none all the same.
        held: held-out rows; without folds they choose how much of the way is taken, as far as they are `choosing`.
        known: whether each training row (n,) has trained the start, so that nothing predicts it as if it were new.
        before_batch: called before every batch that is only scored; may raise to stop.
        scored_at_once: how many rows fit into the memory when they are only scored.

    Raises:
        as `train_parts`.
    """
    parted = part_rows(dataset, seed, settings.curve, known) if cross_validated else []
    everything = [
        Part(np.arange(len(rows.ids)), settings.seeds), *(Part(fold.kept, settings.fold_seeds) for fold in parted)
    ]  # fmt: skip
    judging = None if parted else _judging(held)
    halves = two_halves(dataset, seed) if judging is not None and settings.curve else []
    fewer = [*(chosen for fold in parted for chosen in fold.shares.values()), *halves]
    of_curve = [Part(chosen, settings.fold_seeds) for chosen in fewer]
    left_out = bool(of_curve) and not _affordable(engine, rows, [*everything, *of_curve], settings, seed)
    if left_out:
        parted, halves, of_curve = [replace(fold, shares={}) for fold in parted], [], []
    whole, *others = train_parts(
        engine.rounded(), start, rows, trie, settings, seed, [*everything, *of_curve], on_step, at_once
    )

    def out_of_fold(z: Sequence[np.ndarray]) -> np.ndarray:
        return held_out_scores(engine, rows.ids, parted, z, trie, before_batch, scored_at_once)

    if parted:
        of_folds, fold = others[: len(parted)], _fold_of(parted, len(rows.ids))
        share, scores = _bearable(start, of_folds, out_of_fold, rows.targets[in_a_fold(fold)])
        others = [part.shortened(start, share) for part in others]
        folds = _out_of_fold(parted, fold, others, scores, _rows(parted, known), out_of_fold)
        return Learned(whole.shortened(start, share), share, folds, curve_left_out=left_out)
    if judging is not None:

        def held_out(z: Sequence[np.ndarray]) -> np.ndarray:
            return log_probabilities(engine, judging.ids, z[0], trie, before_batch, scored_at_once)

        share, scores = _bearable(start, [whole], held_out, judging.targets)
        of_halves = [held_out([half.shortened(start, share).z]) for half in others]
        compared = None
        if halves:
            sizes = {SHARE: _mean_rows(halves, known), 1.0: float(len(rows.ids))}
            compared = Halves.of(of_halves, scores, sizes, judging.targets)
        return Learned(whole.shortened(start, share), share, None, len(judging.ids), compared, left_out)
    return Learned(whole)


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
    shares = list(parted[0].shares)
    curve = {
        share: scored([part.z for part in of_shares[place :: len(shares)]]) for place, share in enumerate(shares)
    }  # fmt: skip
    z = np.stack([part.z for part in of_folds])
    return OutOfFold(fold, scores, curve, rows, z)


def choosing(count: int) -> list[int]:
    """Places of those of so many held-out rows that choose something: none of fewer than 16, and at most 256."""
    return evenly_spaced(count, MOST_CHOOSING) if count >= FEWEST_CHOOSING else []


def _judging(held: LabelledRows | None) -> LabelledRows | None:
    """The held-out rows that choose; None where they are too few."""
    if held is None or not (chosen := choosing(len(held.ids))):
        return None
    return LabelledRows([held.ids[row] for row in chosen], held.targets[chosen])


def _fold_of(parted: Sequence[Fold], count: int) -> np.ndarray:
    fold_of = np.full(count, IN_NONE, dtype=np.int64)
    for number, fold in enumerate(parted):
        fold_of[fold.held] = number
    return fold_of


def _rows(parted: Sequence[Fold], known: np.ndarray | None) -> dict[float, float]:
    """Mean number of rows that were trained on, by share."""
    trained = [{**fold.shares, 1.0: fold.kept} for fold in parted]
    return {share: _mean_rows([rows[share] for rows in trained], known) for share in trained[0]}


def _mean_rows(trained: Sequence[np.ndarray], known: np.ndarray | None) -> float:
    """Of some trainings; rows that the start was trained on are counted, too."""
    before = set() if known is None else set(np.flatnonzero(known).tolist())
    return float(np.mean([len(before.union(rows.tolist())) for rows in trained]))
