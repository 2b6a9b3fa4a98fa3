"""Answers from the words of the labels, with no row to learn from.

The readout is the one of a job without rows; the test rows are its unlabeled texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.harness.earlier_tasks import prior_of
from bench.heldout.features import Features
from bench.heldout.material import LoadedBase
from bench.zero_rows.plan import ABOUT, CHANCE, MINILM_DESCRIBED, NLI, OF_DESCRIPTIONS, OF_PRIOR, OF_TEACHER
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Dataset, Example
from onboard.model.batched import log_probabilities
from onboard.model.readout_features import blocks_of
from onboard.statistics.prior import Lesson, Prior
from onboard.statistics.probabilities import softmax
from onboard.statistics.zero_rows import readout_of_names

ABOUT_TEXT: Final = "This text is about {words}"
COSINE_SHARPNESS: Final = 20.0  # what sentence encoders multiply a cosine by
ENTAILMENT: Final = ("mnli", "entailment")  # the source of the base, and its label
Descriptions = Mapping[str, Mapping[str, str]]  # by task and label


@dataclass(frozen=True)
class TaskWithoutRows:
    """A task without labeled rows.

    Args:
        name: of the task.
        words: of each label (K).
        descriptions: of each label (K); empty without any.
        test: rows to answer.
    """

    name: str
    words: tuple[str, ...]
    descriptions: tuple[str, ...]
    test: tuple[Example, ...]

    @classmethod
    def of(cls, name: str, whole: Dataset, test: Sequence[Example], descriptions: Descriptions) -> TaskWithoutRows:
        """The task of a dataset, of which the training rows are not used."""
        by_label = descriptions.get(name, {})
        texts = tuple(by_label[str(label)] for label in whole.labels) if by_label else ()
        return cls(name, tuple(map(words_of, whole.labels)), texts, tuple(test))

    @property
    def whole_texts(self) -> list[str]:
        """The test rows, each as one text."""
        return [row.text_a if row.text_b is None else f"{row.text_a} {row.text_b}" for row in self.test]


class Arms:
    """The arms.

    Args:
        place: the base.
        lessons: of every source task.
        features: of our encoder.
        vectors: unit vectors of texts, as the teacher has them; None where it is not installed.
    """

    def __init__(
        self,
        place: LoadedBase,
        lessons: Mapping[str, Lesson],
        features: Features,
        vectors: Callable[[list[str]], np.ndarray] | None,
    ) -> None:
        self._place, self._lessons, self._features, self._vectors = place, lessons, features, vectors
        self._priors: dict[int, Prior | None] = {}

    def answer(self, task: TaskWithoutRows, arm: str) -> np.ndarray:
        """Probabilities (m, K) of the test rows."""
        if arm == CHANCE:
            return np.full((len(task.test), len(task.words)), 1 / len(task.words))
        if arm in OF_TEACHER:
            return self._by_cosine(task, arm)
        return self._by_entailment(task) if arm == NLI else self._by_readout(task, arm)

    def _by_cosine(self, task: TaskWithoutRows, arm: str) -> np.ndarray:
        assert self._vectors is not None, "its runs are measured where the teacher is installed only"
        labels = [ABOUT_TEXT.format(words=words) if arm == ABOUT else words for words in task.words]
        if arm == MINILM_DESCRIBED:
            labels = [f"{words}: {text}" for words, text in zip(labels, task.descriptions, strict=True)]
        cosine = self._vectors(task.whole_texts).astype(np.float64) @ self._vectors(labels).astype(np.float64).T
        return softmax(COSINE_SHARPNESS * cosine)

    def _by_entailment(self, task: TaskWithoutRows) -> np.ndarray:
        """Zero-shot classification by natural language inference (Yin et al. 2019, arXiv 1909.00161)."""
        name, label = ENTAILMENT
        base, engine = self._place.base, self._place.engine
        source = next(source for source in base.sources if source.name == name)
        column, trie, texts = list(source.labels).index(label), engine.trie(source.words), task.whole_texts
        entailed = []
        for words in task.words:
            ids = engine.encoder.encode([(text, f"{ABOUT_TEXT.format(words=words)}.") for text in texts])
            entailed.append(log_probabilities(engine, ids, base.embeddings[name], trie)[:, column])
        return softmax(np.stack(entailed, axis=1))

    def _by_readout(self, task: TaskWithoutRows, arm: str) -> np.ndarray:
        seen = self._features.of(task.name, list(task.test))
        names = self._of_texts(task.name, task.words)
        if arm in OF_DESCRIPTIONS:
            names = (names + self._of_texts(task.name, task.descriptions)) / 2
        prior = self._prior(seen.shape[1]) if arm in OF_PRIOR else None
        blocks = blocks_of(pairs=task.test[0].text_b is not None)
        return readout_of_names(names, seen, blocks, prior).probabilities(seen)

    def _prior(self, width: int) -> Prior | None:
        if width not in self._priors:
            self._priors[width] = prior_of(self._lessons, width)
        return self._priors[width]

    def _of_texts(self, task: str, texts: Sequence[str]) -> np.ndarray:
        return self._features.of(task, [Example(text, None, text) for text in texts])
