"""Versions that are ready to answer, and what they answer, mixed in one batch as far as their methods allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from onboard.data.regression import Buckets
from onboard.domain.prediction import Prediction
from onboard.domain.task import Task
from onboard.model.batched import mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.readout import bare_features
from onboard.model.scoring import LabelTrie
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import Weights
from onboard.statistics.readout import Readout

Learned = np.ndarray | TaskModule | None  # an embedding (t,), weights of its own, or nothing but a readout


@dataclass(frozen=True)
class Served:
    """A version, ready to answer.

    Args:
        learned: what it is made of, beside a readout.
        hypernetwork: that an embedding is pinned to.
    """

    task: Task
    version: int
    learned: Learned
    hypernetwork: int
    trie: LabelTrie
    weak: bool
    pairs: bool | None
    readout: Readout | None = None

    @property
    def mixes(self) -> bool:
        """Whether its rows may go through the model beside those of other tasks."""
        return not isinstance(self.learned, TaskModule) or self.learned.MIXES

    def answer(self, probabilities: np.ndarray) -> Prediction:
        """Of a row's probabilities (K,); of tasks with more labels in the same batch there may be more."""
        probabilities = probabilities[: self.trie.labels]
        best = int(probabilities.argmax())
        shown, task = tuple(float(value) for value in probabilities), self.task
        if task.low is None or task.high is None:
            labels, answer = task.labels, task.labels[best]
        else:
            buckets = Buckets(task.low, task.high)
            labels, answer = buckets.values, buckets.expectation(shown)
        return Prediction(answer, shown[best], task.name, self.version, shown, self.weak, labels)


@dataclass(frozen=True)
class MixedRows:
    """Rows of several tasks.

    Args:
        engine: of their base.
        ids: token ids of n texts.
        tasks: (n,) places of the rows' versions in `served`.
        served: the versions.
        before_batch: called before every batch; may raise to stop.
    """

    engine: Engine
    ids: Sequence[Sequence[int]]
    tasks: np.ndarray
    served: Sequence[Served]
    before_batch: Callable[[], None] = lambda: None

    def probabilities(self, weights_of: Callable[[Sequence[Served]], Weights]) -> np.ndarray:
        """Of model and readouts together: (n, K), K the largest number of labels.

        Args:
            weights_of: makes the weights of versions, in their order.
        """
        probabilities = np.zeros((len(self.ids), max(version.trie.labels for version in self.served)))
        for places in self._groups():
            self._modelled(probabilities, places, weights_of([self.served[place] for place in places]))
        self._read_out(probabilities)
        return probabilities

    def _groups(self) -> list[list[int]]:
        """Places of versions that go through the model together: all, but those that change the base's own matrices.

        What only a readout answers is in none.
        """
        mixed = [place for place, version in enumerate(self.served) if version.learned is not None and version.mixes]
        alone = [[place] for place, version in enumerate(self.served) if not version.mixes]
        return [*([mixed] if mixed else []), *alone]

    def _modelled(self, probabilities: np.ndarray, places: Sequence[int], weights: Weights) -> None:
        """Fill in the rows (n, K) of the versions at these places, ascending."""
        rows = np.flatnonzero(np.isin(self.tasks, places))
        own, tries = np.searchsorted(places, self.tasks[rows]), [self.served[place].trie for place in places]
        ids = [self.ids[row] for row in rows.tolist()]
        scores = mixed_log_probabilities(self.engine, ids, weights, tries, own, self.before_batch)
        probabilities[rows, : scores.shape[1]] = np.exp(scores.astype(np.float64))

    def _read_out(self, probabilities: np.ndarray) -> None:
        """Let readouts answer beside what the model says (n, K), which is overwritten.

        Only the rows of versions that have one take the pass of the bare encoder, a text of several tasks once.
        """
        readers = [(place, version) for place, version in enumerate(self.served) if version.readout is not None]
        if not readers:
            return
        rows = [np.flatnonzero(self.tasks == place) for place, _ in readers]
        every = np.concatenate(rows)
        features = np.split(
            bare_features(self.engine, [self.ids[row] for row in every], self.before_batch),
            np.cumsum([len(part) for part in rows])[:-1],
        )
        for (_, version), part, of_part in zip(readers, rows, features, strict=True):
            assert version.readout is not None
            labels = slice(0, version.trie.labels)  # a task of the same batch may have more
            probabilities[part, labels] = version.readout.beside(probabilities[part, labels], of_part)
