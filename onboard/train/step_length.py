"""How much of the step of a training or a tuning the new task wants, by rows that did not train what answers them.

What learns few rows for many steps may unlearn what made its start good: on a kind of task that the hypernetwork
knows, half of the step, or none, is often better than all of it. Between the two ends of the step the loss is smooth,
so a few points on the line are enough.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.train.crossvalidation import in_a_fold, mean_loss
from onboard.train.settings import SHARES
from onboard.train.tuning import Tuned

NEARLY: Final = 0.02  # nats, the margin of the guard; fewer rows, as a fold has, bear a long step less well


@dataclass(frozen=True)
class LossByShare:
    """The new task's mean loss in nats, on rows that did not train what answers them.

    Args:
        alone: before the step: of the start of a training, of the embedding alone before a tuning.
        after: by share of the step, those of `SHARES` and maybe more, on the same rows.
    """

    alone: float
    after: Mapping[float, float]

    @classmethod
    def of(cls, alone: np.ndarray, after: Mapping[float, np.ndarray], targets: np.ndarray) -> LossByShare:
        """The losses of log-probabilities (n, K), before the step and by share of it, against targets (n, K)."""
        return cls(mean_loss(alone, targets), {share: mean_loss(scores, targets) for share, scores in after.items()})

    @property
    def least(self) -> float:
        """After the best of `SHARES`."""
        return min(self.after[share] for share in SHARES)

    def wanted(self, *, at_all: bool) -> float:
        """The largest share of `SHARES` with a loss below that before and nearly the least; 0 where there is none.

        Args:
            at_all: where none is below, the smallest share is taken nevertheless.
        """
        enough = self.least + NEARLY
        good = [share for share in SHARES if self.after[share] <= enough and self.after[share] < self.alone]
        return max(good, default=SHARES[-1] if at_all else 0.0)

    def bearable(self) -> float:
        """The largest share of `SHARES` with a loss nearly the least, that before included; else the smallest.

        It asks for less than `wanted`: for a training, whose start was chosen by the very rows that now judge it.
        """
        enough = min(self.alone, self.least) + NEARLY
        return max((share for share in SHARES if self.after[share] <= enough), default=SHARES[-1])

    def to_json(self) -> dict[str, float]:
        """By share as a text; "0" is before the step."""
        return {"0": self.alone, **{f"{share:g}": self.after[share] for share in SHARES}}


def parts_of(let_through: Sequence[float]) -> list[float]:
    """Every share that may be left of the whole step where the guard lets one of these through of what is wanted."""
    return sorted({share * let for share in SHARES for let in let_through}, reverse=True)


def tuned_out_of_fold(
    engine: Engine,
    training_set: TrainingSet,
    starts: np.ndarray,
    fold: np.ndarray,
    shares: Sequence[float],
    tuned_on: Callable[[np.ndarray, LabelledRows], Tuned],
    execution: Execution = UNWATCHED,
) -> dict[float, np.ndarray]:
    """By share of the step, log-probabilities (m, K) of every row of a fold after a tuning without that fold.

    Args:
        engine: with the hypernetwork that the tunings start from.
        training_set: that everything was trained on.
        starts: (folds, t) embeddings that were trained without a fold's rows.
        fold: of each row (n,), or `IN_NONE`: m rows are in one.
        shares: of each tuning's step.
        tuned_on: tunes from an embedding (t,) on rows.
        execution: asked before every batch that is scored.

    Raises:
        as `tuned_on`.
    """
    rows, judged = training_set.rows, in_a_fold(fold)
    scores = {share: np.empty((len(judged), rows.targets.shape[1]), dtype=np.float32) for share in shares}
    for number, start in enumerate(starts.astype(np.float32)):
        tuned = tuned_on(start, rows.at(np.flatnonzero(fold != number)))
        held = rows.at(np.flatnonzero(fold == number))
        for share, of_share in scores.items():
            part = tuned.shortened(engine.hypernetwork, start, share)
            of_share[fold[judged] == number] = log_probabilities(
                engine.under(part.hypernetwork), held.ids, part.z, training_set.trie, execution.before_batch,
                execution.scored_at_once,
            )  # fmt: skip
    return scores
