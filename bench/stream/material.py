"""The material of a stream: the base as a model, and each task's rows as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from bench.harness.as_a_job import Lesson
from bench.harness.as_if_new import workbench
from bench.stream.tasks import SUITE, drawn
from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.dataset import Example
from onboard.guard.canaries import canary_ids
from onboard.model.batch import LabelledRows
from onboard.model.engine import Engine
from onboard.pipeline.material import Workbench


@dataclass(frozen=True)
class TaskRows:
    """One task's rows in one order of the stream.

    Args:
        bench: its labelled rows, on the base as it is.
        test: rows that it is tested on.
        seed: of the draw of the labelled rows, and of all that is done with them.
        max_tokens: after which texts are cut.
    """

    bench: Workbench
    test: list[Example]
    seed: int
    max_tokens: int

    @cached_property
    def labelled(self) -> LabelledRows:
        """The trained parts on."""
        train = self.bench.dataset.train
        return LabelledRows(self.bench.encode(train, self.max_tokens), self.bench.targets(train))

    @cached_property
    def hashes(self) -> np.ndarray:
        """Of the labelled rows, sorted (n,)."""
        return np.unique(self.bench.hashes(self.bench.dataset.train))

    @cached_property
    def test_ids(self) -> list[list[int]]:
        """Token ids of the test rows (r)."""
        return self.bench.encode(self.test, self.max_tokens)

    @cached_property
    def truth(self) -> np.ndarray:
        """Label of each test row (r,)."""
        return np.array(self.bench.dataset.class_indices(self.test))

    @cached_property
    def tokens(self) -> float:
        """Mean length of a test row."""
        return float(np.mean([len(ids) for ids in self.test_ids]))


@dataclass(frozen=True)
class Material:
    """The same for all methods.

    Args:
        base: that the tasks are learned on.
        data: folder with wide/.
        shots: labelled rows of a task.
        test_rows: most rows to test a task on.
        max_tokens: after which texts are cut; long ones are most of what a stream costs.
    """

    base: Base
    data: Path
    shots: int
    test_rows: int
    max_tokens: int = 64
    _rows: dict[tuple[str, int], TaskRows] = field(default_factory=dict, repr=False, compare=False)
    _last: dict[tuple[str, int, bytes, tuple[str, ...]], Lesson] = field(
        default_factory=dict, repr=False, compare=False
    )

    @cached_property
    def engine(self) -> Engine:
        """The base as a model, shared by all streams: nobody may change its weights."""
        return load_engine(self.base, "cpu")

    @cached_property
    def canaries(self) -> tuple[list[list[int]], list[list[int]]]:
        """Texts to tune with, and others for the guard to judge by, as token ids."""
        return canary_ids(self.engine.encoder, "tuning"), canary_ids(self.engine.encoder, "guard")

    def of(self, task: str, order: int) -> TaskRows:
        """The rows of a task in that order of the stream."""
        if (task, order) not in self._rows:
            dataset, test = drawn(self.data / SUITE / task, self.shots, order, self.test_rows)
            bench = workbench(self.base, self.engine, dataset)
            self._rows[task, order] = TaskRows(bench, test, order, self.max_tokens)
        return self._rows[task, order]

    def lesson(self, task: str, order: int, engine: Engine, start: np.ndarray, words: Sequence[str]) -> Lesson:
        """The training of a task from a start (t,); the last one is not done again."""
        key = task, order, start.tobytes(), tuple(words)
        last = self._last.get(key)
        if last is None or last.engine.hypernetwork is not engine.hypernetwork:
            rows = self.of(task, order)
            last = Lesson(engine, rows.bench, rows.labelled, start, engine.trie(words), rows.seed)
            self._last.clear()
            self._last[key] = last
        return last
