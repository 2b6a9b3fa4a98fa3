"""The rows of a cell, the same for all methods, and where an embedding may start on them."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from bench.harness.as_a_job import Lesson
from bench.harness.as_if_new import candidates, drawn_tests
from bench.transfer.cells import AUTO, TrainingRun
from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.splits import holdout, shots
from onboard.domain.dataset import Dataset
from onboard.pipeline.check import label_words
from onboard.pipeline.material import Workbench
from onboard.probe.candidates import Candidate
from onboard.probe.choice import choose
from onboard.probe.evaluator import Evaluator
from onboard.probe.settings import ProbeSettings

TASKS_IN_MEMORY: Final = 8
SETTINGS: Final = ProbeSettings()


@dataclass(frozen=True)
class Start:
    """Where an embedding starts.

    Args:
        embedding: what it is called.
        z: (t,) float32.
        words: label words that stand for the task's labels.
        passes: rows that went through the model to find it.
        alarm: why no earlier task was worth starting from.
        seconds: of the processor, to find it.
    """

    embedding: str
    z: np.ndarray
    words: tuple[str, ...]
    passes: int = 0
    alarm: str | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Embedding:
    """An embedding that was trained from a start.

    Args:
        lesson: that it came of.
        seconds: that its training took, the start not counted.
    """

    lesson: Lesson
    seconds: float


class Cell:
    """One task with one draw of its rows. Of more than 64 ours hold a quarter out, as a job does; the others none.

    Args:
        base: that the task is learned on.
        task: its name.
        dataset: the labelled rows that were drawn, and all test rows.
        seed: of the draw.
        test_rows: most rows to test on; always the same ones.
    """

    def __init__(self, base: Base, task: str, dataset: Dataset, seed: int, test_rows: int) -> None:
        self.base, self.task, self.dataset, self.seed = base, task, dataset, seed
        engine, own = load_engine(base, "cpu"), holdout(self.dataset, seed)
        self.bench = Workbench(base, engine, own, label_words(self.dataset, engine))
        self.own = self.bench.labelled(own.train)
        self.ids = self.bench.encode(self.dataset.train)
        self.targets = self.bench.targets(self.dataset.train)
        self.test = drawn_tests(self.dataset, test_rows)
        self.test_ids = self.bench.encode(self.test)
        self.truth = np.array(self.dataset.class_indices(self.test))
        self.trained: dict[str, Embedding] = {}  # by the name of the start, for what goes on from there
        self._starts: dict[str, Start] = {}

    def start(self, name: str) -> Start:
        """The start of that name: `auto`, or a candidate with the label words that fit the rows best under it."""
        if name not in self._starts:
            begun = time.process_time()
            start = self._chosen() if name == AUTO else self._named(name)
            self._starts[name] = replace(start, seconds=time.process_time() - begun)
        return self._starts[name]

    def _named(self, name: str) -> Start:
        (candidate,) = [offered for offered in self._candidates if offered.embedding == name]
        before = self._evaluator.passes
        score = self._evaluator.score(candidate, np.arange(self._evaluator.rows), known_too=True)
        assert score is not None
        return Start(name, candidate.z, score.words, self._evaluator.passes - before)

    def _chosen(self) -> Start:
        before = self._evaluator.passes
        probed = choose(self._evaluator, self._candidates, np.arange(self._evaluator.rows), SETTINGS)
        passes = self._evaluator.passes - before
        return Start(probed.chosen.embedding, probed.z, probed.chosen.words, passes, probed.alarm)

    @cached_property
    def _candidates(self) -> list[Candidate]:
        rows = self.bench.probed(self.seed)
        fingerprint = self.bench.fingerprint(self.bench.encode(rows), self.bench.targets(rows))
        return candidates(self.base, self.seed, self.task, fingerprint)

    @cached_property
    def _evaluator(self) -> Evaluator:
        """As in a job."""
        return self.bench.evaluator(self.bench.probed(self.seed))


@lru_cache(TASKS_IN_MEMORY)
def read(folder: Path) -> Dataset:
    """All rows of a task."""
    options = ReadOptions(test=folder / "test.jsonl.gz", suspects=False)
    return read_dataset(folder / "train.jsonl.gz", options).dataset


class Cells:
    """The cell of a run; that of the run before is kept, and with it what its probe found.

    Args:
        base: that tasks are learned on.
        folder: of the suite.
        test_rows: most rows to test on.
    """

    def __init__(self, base: Base, folder: Path, test_rows: int) -> None:
        self.base, self.folder, self.test_rows = base, folder, test_rows
        self._last: tuple[tuple[str, int, int], Cell] | None = None

    def of(self, run: TrainingRun) -> Cell:
        """The rows of the run."""
        if self._last is None or self._last[0] != run.cell:
            dataset = shots(read(self.folder / run.task), run.shots, run.seed)
            self._last = run.cell, Cell(self.base, run.task, dataset, run.seed, self.test_rows)
        return self._last[1]
