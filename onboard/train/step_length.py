"""Choose the share of a training's or tuning's step that is best for the new task, on rows outside the training.

Many steps on few rows may undo what made the start good. For kinds of tasks that the hypernetwork knows, half of the
step, or none, is often better than all of it. Between both ends of the step the loss is smooth, so a few points on the
line are enough.
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

NEARLY: Final = 0.02  # nats, the margin of the guard; fewer rows, as in a fold, tolerate a long step less well


@dataclass(frozen=True)
class LossByShare:
    """The new task's mean loss in nats, on rows outside the training.

    Args:
        alone: before the step: of the start of a training, or of the embedding alone before a tuning.
        after: by share of the step (at least `SHARES`), on the same rows.
    """

    alone: float
    after: Mapping[float, float]

    @classmethod
    def of(cls, alone: np.ndarray, after: Mapping[float, np.ndarray], targets: np.ndarray) -> LossByShare:
        """Compute the losses of log-probabilities (n, K), before the step and by share of it, for targets (n, K)."""
        return cls(mean_loss(alone, targets), {share: mean_loss(scores, targets) for share, scores in after.items()})

    @property
    def least(self) -> float:
        """Loss at the best of `SHARES`."""
        return min(self.after[share] for share in SHARES)

    def wanted(self, *, at_all: bool) -> float:
        """Return the largest of `SHARES` with a loss below that before the step and close to the minimum; 0 if there is
        none.

        Args:
            at_all: return the smallest share instead of 0.
        """
        enough = self.least + NEARLY
        good = [share for share in SHARES if self.after[share] <= enough and self.after[share] < self.alone]
        return max(good, default=SHARES[-1] if at_all else 0.0)

    def bearable(self) -> float:
        """Return the largest of `SHARES` with a loss close to the minimum, including that before the step; else the
        smallest.

        This is more lenient than `wanted`. It is for trainings, because the start was chosen on the rows that judge
        now.
        """
        enough = min(self.alone, self.least) + NEARLY
        return max((share for share in SHARES if self.after[share] <= enough), default=SHARES[-1])

    def to_json(self) -> dict[str, float]:
        """Return losses by share as text; "0" is before the step."""
        return {"0": self.alone, **{f"{share:g}": self.after[share] for share in SHARES}}


def parts_of(let_through: Sequence[float]) -> list[float]:
    """Return every share of the whole step that may remain if the guard accepts one of these shares of the
    wanted one.
    """
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
    """Return log-probabilities (m, K) of every row in a fold, by share of the step, after tunings without that fold.

    Args:
        engine: engine with the hypernetwork that the tunings start from.
        training_set: the whole training set.
        starts: (folds, t) embeddings that were trained without a fold's rows.
        fold: fold of each row (n,), or `IN_NONE`; m rows are in one.
        shares: shares of each tuning's step.
        tuned_on: tunes from an embedding (t,) on rows.
        execution: called before every batch that is scored.

    Raises:
        See `tuned_on`.
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
