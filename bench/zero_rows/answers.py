"""Answers from the words of the labels, with no row to learn from.

Texts that are asked are centred and scaled among themselves, as any unlabelled texts of a task would do it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bench.harness.earlier_tasks import prior_of
from bench.heldout.features import Features
from bench.zero_rows.plan import ABOUT, BOTH, CHANCE, OF_TEACHER, PRIOR
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Dataset, Example
from onboard.statistics.blocks import lengths_of_blocks
from onboard.statistics.prior import NAME_BLOCKS, Lesson, Prior, names_on_scale
from onboard.statistics.probabilities import softmax
from onboard.statistics.readout import USUAL, signed_roots

ABOUT_TEXT: Final = "This text is about {words}"
COSINE_SHARPNESS: Final = 20.0  # what sentence encoders multiply a cosine by
Descriptions = Mapping[str, Mapping[str, str]]  # by task and label


@dataclass(frozen=True)
class TaskWithoutRows:
    """A task without labelled rows.

    Args:
        task: its name.
        labels: what there is to choose from, as texts to read (K).
        test: rows to answer.
    """

    task: str
    labels: tuple[str, ...]
    test: tuple[Example, ...]


def asked_of(task: str, whole: Dataset, test: tuple[Example, ...], descriptions: Descriptions) -> TaskWithoutRows:
    """The task with its label words, behind them what a description says of them."""
    own = descriptions.get(task, {})
    words = (words_of(label) + (f": {own[str(label)]}" if str(label) in own else "") for label in whole.labels)
    return TaskWithoutRows(task, tuple(words), test)


class Arms:
    """The arms.

    Args:
        lessons: of every source task.
        features: of our encoder.
        vectors: unit vectors of texts, as the teacher has them; None where it is not installed.
    """

    def __init__(
        self, lessons: Mapping[str, Lesson], features: Features, vectors: Callable[[list[str]], np.ndarray] | None
    ) -> None:
        self._lessons, self._features, self._vectors = lessons, features, vectors
        self._priors: dict[int, Prior | None] = {}

    def answer(self, asked: TaskWithoutRows, arm: str) -> np.ndarray:
        """Probabilities (m, K) of the test rows."""
        if arm == CHANCE:
            return np.full((len(asked.test), len(asked.labels)), 1 / len(asked.labels))
        if arm in OF_TEACHER:
            return self._by_cosine(asked, ABOUT_TEXT if arm == ABOUT else "{words}")
        return self._by_readout(asked, arm)

    def _by_cosine(self, asked: TaskWithoutRows, form: str) -> np.ndarray:
        assert self._vectors is not None, "its runs are measured where the teacher is installed only"
        texts = [row.text_a if row.text_b is None else f"{row.text_a} {row.text_b}" for row in asked.test]
        labels = [form.format(words=words) for words in asked.labels]
        cosine = self._vectors(texts).astype(np.float64) @ self._vectors(labels).astype(np.float64).T
        return softmax(COSINE_SHARPNESS * cosine)

    def _by_readout(self, asked: TaskWithoutRows, arm: str) -> np.ndarray:
        seen = signed_roots(self._features.of(asked.task, list(asked.test)))
        names = self._features.of(asked.task, [Example(words, None, words) for words in asked.labels])
        blocks = seen.shape[1] * NAME_BLOCKS // names.shape[1]
        centred = seen - seen.mean(0)
        weights = self._weights(names_on_scale(names), arm, seen.shape[1])
        return softmax(USUAL[1] * (centred / lengths_of_blocks(centred, blocks)) @ weights.T)

    def _weights(self, names: np.ndarray, arm: str, width: int) -> np.ndarray:
        """(K, width) of a readout that no row has made: the prior's, that of the words as rows, or both in one."""
        if width not in self._priors:
            self._priors[width] = prior_of(self._lessons, width)
        prior = self._priors[width]
        towards = np.zeros((len(names), width))
        if arm in (PRIOR, BOTH) and prior is not None:
            towards = prior.weights(names)
        return towards if arm == PRIOR else _drawn(names, towards)


def _drawn(names: np.ndarray, towards: np.ndarray) -> np.ndarray:
    """Ridge regression on the words as rows, one of each label, towards weights (K, width) instead of zero."""
    count = len(names)
    x = np.zeros((count, towards.shape[1]))
    x[:, : names.shape[1]] = names
    left = np.eye(count) - 1 / count - x @ towards.T  # (K rows, K labels)
    moved: np.ndarray = towards + np.linalg.solve(x @ x.T + USUAL[0] * np.eye(count), left).T @ x
    return moved
