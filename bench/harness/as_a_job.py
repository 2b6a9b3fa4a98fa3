"""One task learned as a job learns it, or its embedding alone, for benches whose tasks have no job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from onboard.contract.guard import GuardVerdict
from onboard.data.splits import is_folded
from onboard.evaluate.baselines import cross_validate_baselines, score_baselines
from onboard.guard import Step, guard
from onboard.guard.risk import at_risk
from onboard.guard.settings import GuardSettings
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.protected import Protection
from onboard.model.scoring import LabelTrie
from onboard.pipeline.material import Workbench
from onboard.train.crossvalidation import mean_loss
from onboard.train.fewshot import Part, Trained, train_parts
from onboard.train.learning import Learned, Validation, choosing, learn
from onboard.train.settings import SHARES, FewShotSettings, TuningSettings
from onboard.train.step_length import NEARLY, LossByShare, tuned_out_of_fold
from onboard.train.tuning import Tuned, tune
from onboard.train.worth_tuning import EmbeddingAlone, Worth, fitted, worth_tuning

SETTINGS: Final = replace(FewShotSettings(), curve=())  # the learning curve decides nothing
STEP: Final = {"shares": SHARES, "nearly": NEARLY}  # what the choice of a share depends on


@dataclass(frozen=True)
class Lesson:
    """A task on its way, trained when its embedding is first requested.

    Args:
        engine: under the hypernetwork that the task is learned with.
        bench: of the task, with its held-out rows.
        rows: its training rows.
        start: (t,) that training starts from.
        trie: of the label words.
        seed: of the draws.
    """

    engine: Engine
    bench: Workbench
    rows: LabelledRows
    start: np.ndarray
    trie: LabelTrie
    seed: int

    @cached_property
    def held(self) -> LabelledRows | None:
        """Held-out rows, those that choose; None where none do."""
        validation = self.bench.dataset.validation
        chosen = choosing(len(validation))
        return self.bench.labelled([validation[row] for row in chosen]) if chosen else None

    @cached_property
    def learned(self) -> Learned:
        """The embedding, and its folds where all rows are trained on."""
        return learn(
            self.engine, TrainingSet(self.rows, self.trie), self.start, SETTINGS.for_rows(len(self.rows.ids)),
            self.seed, Validation(self.bench.dataset, is_folded(self.bench.dataset), self.held),
            self.bench.execution(),
        )  # fmt: skip

    @property
    def z(self) -> np.ndarray:
        """(t,) the embedding that was trained on all rows."""
        return self.learned.trained.z

    @cached_property
    def _judged(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-probabilities and targets (m, K) of rows that did not train what answers them."""
        if self.learned.folds is not None:
            return self.learned.folds.scores, self.rows.targets[self.learned.folds.judged]
        assert self.held is not None, "the task has rows enough for folds"
        return self._scores(self.engine, self.held, self.z), self.held.targets

    def worth(self) -> Worth:
        """The decision of the rule of `auto`."""
        dataset, folds = self.bench.dataset, self.learned.folds
        scores, targets = self._judged
        others = score_baselines(dataset, dataset.validation) if folds is None else cross_validate_baselines(
            dataset, folds.fold
        )  # fmt: skip
        right = scores.argmax(1) == targets.argmax(1)
        return worth_tuning(
            EmbeddingAlone(
                accuracy=float(right.mean()),
                rows=len(right),
                majority=others["majority"]["accuracy"].value,
                tfidf=others["tfidf_logistic_regression"]["accuracy"].value,
                training_loss=self._training_loss,
                labels=targets.shape[1],
            )
        )

    def _training_loss(self) -> float:
        places = fitted(len(self.rows.ids))
        rows = LabelledRows([self.rows.ids[row] for row in places], self.rows.targets[places])
        return mean_loss(self._scores(self.engine, rows, self.z), rows.targets)

    def losses(
        self, shares: Sequence[float], tuned: Tuned, tuned_on: Callable[[np.ndarray, LabelledRows], Tuned]
    ) -> LossByShare:
        """Of the embedding alone, and after each share of the step of a tuning.

        Args:
            shares: of the step.
            tuned: by all rows.
            tuned_on: the way to tune from an embedding (t,) on some rows.

        Raises:
            as `tuned_on`.
        """
        folds, (alone, targets) = self.learned.folds, self._judged
        if folds is not None:
            scores = tuned_out_of_fold(
                self.engine, TrainingSet(self.rows, self.trie), folds.z, folds.fold, shares, tuned_on,
                self.bench.execution(),
            )  # fmt: skip
        else:
            assert self.held is not None
            parts = {share: tuned.shortened(self.engine.hypernetwork, self.z, share) for share in shares}
            scores = {
                share: self._scores(self.engine.under(part.hypernetwork), self.held, part.z)
                for share, part in parts.items()
            }
        return LossByShare.of(alone, scores, targets)

    def tuned(self, settings: TuningSettings, protection: Protection, z: np.ndarray, rows: LabelledRows) -> Tuned:
        """The service's tuning from an embedding (t,) on the rows of the lesson, or on a part of them."""
        settings = settings.for_part(len(rows.ids), of=len(self.rows.ids))
        return tune(self.engine.rounded(), TrainingSet(rows, self.trie), z, protection, settings, self.seed)

    def _scores(self, engine: Engine, rows: LabelledRows, z: np.ndarray) -> np.ndarray:
        return log_probabilities(engine, rows.ids, z, self.trie, at_once=self.bench.scored_at_once)


def train_embedding(
    engine: Engine,
    start: np.ndarray,
    rows: LabelledRows,
    trie: LabelTrie,
    settings: FewShotSettings,
    seed: int,
    execution: Execution = UNWATCHED,
) -> Trained:
    """Train one embedding on all rows and nothing that the service trains next to it; arguments as of `train_parts`."""
    everything = [Part(np.arange(len(rows.ids)), settings.seeds)]
    return train_parts(engine, TrainingSet(rows, trie), start, settings, seed, everything, execution)[0]


def judged(engine: Engine, step: Step, protection: Protection, settings: GuardSettings, seed: int) -> GuardVerdict:
    """The verdict of a job's guard on a step: of shipped tasks, which have no their own texts, it looks at few.

    Args:
        as `guard`.
    """
    earlier = protection.tasks
    risky = at_risk(earlier, [not task.texts for task in earlier], step.candidate, step.near, settings)
    looked_at = replace(protection, tasks=[earlier[place] for place in risky])
    return guard(engine, step, looked_at, settings, seed=seed, left_out=len(earlier) - len(risky))
