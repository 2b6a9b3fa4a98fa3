"""The answers of each arm to the test rows of a draw: a score for every label of the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from bench.harness.earlier_tasks import prior_of
from bench.heldout.features import Features
from bench.heldout.linear import logistic, scaled
from bench.heldout.material import LoadedBase
from bench.heldout.plan import ArmRun
from bench.multilabel.lora import LabelledTexts, lora_scores
from bench.multilabel.plan import COMMONEST, LORA, LORA_RECIPE, MINILM, OURS, TFIDF
from bench.transfer.recipes import RECIPES
from onboard.bases.load import fresh_engine
from onboard.data.splits import split_rank
from onboard.data.targets import indicators_of
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Dataset, Example, Label, example_key, in_canonical_order
from onboard.domain.label_set import all_labels
from onboard.evaluate.baselines import predict_learned
from onboard.model.readout_features import blocks_of
from onboard.pipeline.check import label_words
from onboard.statistics.label_sets import fit_sets
from onboard.statistics.prior import Lesson, Prior

TEST_ROWS: Final = 300


@dataclass(frozen=True)
class Draw:
    """One draw of a task's rows, as they come.

    Args:
        task: its name.
        seed: of the draw.
        labels: of the task; the draw may lack rows of some, which no arm answers.
        dataset: the drawn rows, with the labels that they have.
        test: rows that are answered.
    """

    task: str
    seed: int
    labels: tuple[Label, ...]
    dataset: Dataset
    test: tuple[Example, ...]

    @cached_property
    def truth(self) -> np.ndarray:
        """Whether each test row has each of the task's labels (m, L)."""
        return indicators_of(self.labels, self.test).astype(np.float64)

    @cached_property
    def train_truth(self) -> np.ndarray:
        """Whether each drawn row has each label of the draw (n, L')."""
        return indicators_of(self.dataset.labels, self.dataset.train)

    def of_task(self, scores: np.ndarray) -> np.ndarray:
        """Scores (m, L') of the draw's labels as those of the task's (m, L): 0 where the draw lacks the label."""
        wide = np.zeros((len(scores), len(self.labels)))
        wide[:, [self.labels.index(label) for label in self.dataset.labels]] = scores
        return wide


def drawn(whole: Dataset, run: ArmRun) -> Draw:
    """The rows of a run: so many of the training rows, by the seed; the test rows are always the same."""
    order = sorted(whole.train, key=lambda row: split_rank(run.draw, example_key(row)))[: run.rows]
    test = sorted(whole.test, key=lambda row: split_rank(0, example_key(row)))[:TEST_ROWS]
    labels = in_canonical_order(all_labels(whole.kind, order))
    return Draw(
        run.task, run.draw, whole.labels, replace(whole, labels=labels, train=tuple(order), test=()), tuple(test)
    )


class Arms:
    """The arms.

    Args:
        place: the base.
        lessons: of every source task of the base.
        features: of our encoder.
        teacher: vectors of MiniLM; None where it is not installed.
    """

    def __init__(
        self, place: LoadedBase, lessons: Mapping[str, Lesson], features: Features, teacher: Features | None
    ) -> None:
        self._place = place
        self._lessons, self._features, self._teacher = lessons, features, teacher
        self._priors: dict[int, Prior | None] = {}

    def answer(self, draw: Draw, arm: str) -> np.ndarray:
        """Scores (m, L) of the test rows; a label is answered from 1/2 on."""
        if arm == COMMONEST:
            rows = [row.label for row in draw.dataset.train]
            commonest = max(sorted(set(map(str, rows))), key=rows.count)
            answer = indicators_of(draw.labels, [Example("", None, commonest)])
            return np.repeat(answer, len(draw.test), axis=0)
        if arm == TFIDF:
            (scores,) = predict_learned(draw.dataset, draw.dataset.train, draw.test, 0).values()
        elif arm == MINILM:
            scores = self._by_teacher(draw)
        elif arm == LORA:
            scores = self._by_lora(draw)
        else:
            scores = self._by_readout(draw, with_words=arm == OURS)
        return draw.of_task(scores)

    def _by_teacher(self, draw: Draw) -> np.ndarray:
        assert self._teacher is not None, "its runs are measured where the teacher is installed only"
        train, test = scaled(self._teacher.of(draw.task, draw.dataset.train), self._teacher.of(draw.task, draw.test))
        scores = np.repeat(draw.train_truth.mean(0, keepdims=True), len(draw.test), axis=0)
        for label, present in enumerate(draw.train_truth.T.astype(np.int64)):
            if 0 < present.sum() < len(present):
                scores[:, label] = logistic(train, present, test, balanced=True)[:, 1]
        return scores

    def _by_lora(self, draw: Draw) -> np.ndarray:
        engine = fresh_engine(self._place.base).to(self._place.engine.device)

        def encoded(rows: Sequence[Example]) -> list[list[int]]:
            return engine.encoder.encode([(row.text_a, row.text_b) for row in rows])

        rows = LabelledTexts(encoded(draw.dataset.train), draw.train_truth)
        words = label_words(draw.dataset, engine)
        return lora_scores(engine, words, rows, encoded(draw.test), RECIPES[LORA_RECIPE], draw.seed)

    def _by_readout(self, draw: Draw, *, with_words: bool) -> np.ndarray:
        train, test = (self._features.of(draw.task, rows) for rows in (draw.dataset.train, draw.test))
        names, prior = None, None
        if with_words:
            words = [Example(words_of(label), None, label) for label in draw.dataset.labels]
            names = self._features.of(draw.task, words)
            prior = self._prior(train.shape[1])
        blocks = blocks_of(pairs=draw.dataset.pairs)
        groups = [np.array([row]) for row in range(len(train))]
        return fit_sets(train, draw.train_truth, groups, blocks, names, prior).readout.probabilities(test)

    def _prior(self, width: int) -> Prior | None:
        if width not in self._priors:
            self._priors[width] = prior_of(self._lessons, width)
        return self._priors[width]
