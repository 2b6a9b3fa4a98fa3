"""Answers after so many tasks: by a readout with their prior, or by the default with their starts too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.accumulation.plan import DEFAULT, parts_of
from bench.harness.earlier_tasks import base_of, first_tasks, packed_lessons, prior_of
from bench.heldout.features import Features
from bench.heldout.learned import Learned, learn
from bench.heldout.material import Cells, LoadedBase
from bench.heldout.plan import ArmRun
from bench.heldout.readouts import fit_alone
from onboard.bases.load import load_engine
from onboard.statistics.prior import Lesson, Prior

_FOLDER: Final = "base-{count}-{seed}"


class Arms:
    """The arms.

    Args:
        place: the base with all of its tasks.
        data: folder of the held-out tasks.
        lessons: of every source task, by name.
        features: of the base's encoder.
        work: where bases with fewer tasks are written.
    """

    def __init__(
        self, place: LoadedBase, data: Path, lessons: Mapping[str, Lesson], features: Features, work: Path
    ) -> None:
        self._place, self._lessons, self._features = place, lessons, features
        self._data, self._work = data, work
        self._cells = Cells(place, data)
        self._priors: dict[tuple[int, int, int], Prior | None] = {}
        self._smaller: tuple[tuple[int, int], Cells] | None = None

    @property
    def cells(self) -> Cells:
        """Of the base with all of its tasks."""
        return self._cells

    def answer(self, run: ArmRun) -> Learned:
        """The answers of the run's arm. Raises InputError: the rows make no readout."""
        kind, count = parts_of(run.arm)
        if kind == DEFAULT:
            cell = self._cells_of(count, run.draw).of(run)
            published = learn(cell, "auto", whole=True).published
            assert published is not None, "the whole job was asked for"
            return Learned(published.answers, published.seconds, {})
        cell = self._cells.of(run)
        seen = self._features.of(cell.task, cell.test)
        started = time.process_time()
        prior = self._prior(count, run.draw, seen.shape[1])
        answers = fit_alone(cell, self._features, prior).readout.probabilities(seen)
        return Learned(answers, time.process_time() - started, {"tasks_of_form": len(prior.lessons) if prior else 0})

    def _prior(self, count: int, draw: int, width: int) -> Prior | None:
        """That of the first tasks in the draw's order, of those with rows of such a form."""
        key = count, draw, width
        if key not in self._priors:
            names = first_tasks(self._lessons, count, draw)
            self._priors[key] = prior_of({name: self._lessons[name] for name in names}, width)
        return self._priors[key]

    def _cells_of(self, count: int, draw: int) -> Cells:
        """Of a base that has learned so many tasks; the last one is remembered."""
        if self._smaller is None or self._smaller[0] != (count, draw):
            base = self._place.base
            names = set(first_tasks([source.name for source in base.sources], count, draw))
            folder = self._work / _FOLDER.format(count=count, seed=draw)
            smaller = base_of(base, names, folder, packed_lessons(base, names))
            self._smaller = (
                (count, draw),
                Cells(LoadedBase(smaller, load_engine(smaller, self._place.device)), self._data),
            )
        return self._smaller[1]
