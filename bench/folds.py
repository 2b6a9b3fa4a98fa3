"""What a job asks of its folds before and after a tuning, for benches whose tasks have no job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from onboard.evaluate.baselines import cross_validate_baselines
from onboard.model.batch import LabelledRows
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.scoring import LabelTrie
from onboard.train.crossvalidation import OutOfFold, mean_loss
from onboard.train.fewshot import FewShotSettings
from onboard.train.learning import learn
from onboard.train.step_length import NEARLY, SHARES, LossByShare, tuned_out_of_fold
from onboard.train.tuning import Tuned
from onboard.train.worth_tuning import EmbeddingAlone, Worth, worth_tuning
from onboard.workbench import Workbench

STEP: Final = {"shares": SHARES, "nearly": NEARLY}  # what the choice of a share depends on


@dataclass(frozen=True)
class Folds:
    """The folds of one task's training rows, trained when they are first asked.

    Args:
        engine: under the hypernetwork that the task is learned with.
        bench: of the task.
        rows: its training rows.
        start: (t,) that every fold is trained from.
        trie: of the label words.
        settings: of that training.
        seed: of the draws.
    """

    engine: Engine
    bench: Workbench
    rows: LabelledRows
    start: np.ndarray
    trie: LabelTrie
    settings: FewShotSettings
    seed: int

    @cached_property
    def trained(self) -> OutOfFold:
        """Embeddings, and the answers to every row by the one that has not seen it."""
        found = learn(
            self.engine, self.start, self.rows, self.trie, self.settings, self.seed, self.bench.dataset,
            cross_validated=True, at_once=self.bench.trained_at_once, scored_at_once=self.bench.scored_at_once,
        ).folds  # fmt: skip
        assert found is not None, "the task has rows enough for folds"
        return found

    def worth(self, z: np.ndarray, alarm: bool) -> Worth:
        """What the rule of `auto` says of an embedding (t,) that was trained on all rows."""
        others = cross_validate_baselines(self.bench.dataset, self.trained.fold)
        scores = log_probabilities(self.engine, self.rows.ids, z, self.trie)
        right = self.trained.scores.argmax(1) == self.rows.targets.argmax(1)
        return worth_tuning(
            EmbeddingAlone(
                accuracy=float(right.mean()),
                rows=len(right),
                majority=others["majority"]["accuracy"].value,
                tfidf=others["tfidf_logistic_regression"]["accuracy"].value,
                training_loss=mean_loss(scores, self.rows.targets),
                labels=self.rows.targets.shape[1],
                alarm=alarm,
            )
        )

    def losses(self, shares: Sequence[float], tuned_on: Callable[[np.ndarray, LabelledRows], Tuned]) -> LossByShare:
        """Of the embedding alone, and after each share of the step of a tuning. Raises as `tuned_on`."""
        folds = self.trained
        scores = tuned_out_of_fold(
            self.engine, folds.z, folds.fold, self.rows, self.trie, shares, tuned_on,
            at_once=self.bench.scored_at_once,
        )  # fmt: skip
        after = {share: mean_loss(of_share, self.rows.targets) for share, of_share in scores.items()}
        return LossByShare(mean_loss(folds.scores, self.rows.targets), after)
