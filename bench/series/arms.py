"""Answers with and without the first half of a series."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.harness.earlier_tasks import lesson_from, prior_of, refit_prior
from bench.heldout.features import Features
from bench.heldout.learned import Learned, opened_home, publish
from bench.heldout.plan import ArmRun
from bench.heldout.readouts import fit_alone
from bench.series.material import Cells, Series, dataset_of
from bench.series.plan import ALL, ALONE, BASE, DEFAULT, DEFAULT_ALL, DEFAULTS, ROWS, series_of
from onboard.data.splits import shots
from onboard.statistics.prior import Lesson, Prior

_ALL_ROWS: Final = 10**6


class Arms:
    """The arms.

    Args:
        cells: of the series.
        series: by name.
        lessons: of the base's sources, by task.
        features: of the base's encoder.
        work: where homes are kept in which the first half of a series was learned; another one for other settings.
    """

    def __init__(
        self, cells: Cells, series: Mapping[str, Series], lessons: Mapping[str, Lesson], features: Features, work: Path
    ) -> None:
        self._cells, self._series, self._lessons, self._features = cells, series, lessons, features
        self._work = work
        self._priors: dict[tuple[str, str, int, int], Prior | None] = {}

    def answer(self, run: ArmRun) -> Learned:
        """The answers of the run's arm. Raises InputError: the rows make no readout."""
        if run.arm in DEFAULTS:
            return self._published(run)
        cell = self._cells.of(run)
        seen = self._features.of(cell.task, cell.test)
        prior = self._prior(run, seen.shape[1])
        started = time.process_time()
        answers = fit_alone(cell, self._features, prior).readout.probabilities(seen)
        return Learned(answers, time.process_time() - started, {})

    def _prior(self, run: ArmRun, width: int) -> Prior | None:
        if run.arm == ALONE:
            return None
        name = "" if run.arm == BASE else series_of(run.task)
        draw = 0 if run.arm in (BASE, ALL) else run.draw  # all rows are the same in every draw
        key = name, run.arm, draw, width
        if key not in self._priors:
            rows = _ALL_ROWS if run.arm == ALL else ROWS
            earlier = self._series[name].first_half if name else ()
            own = {task: self._lesson(task, rows, draw) for task in earlier}
            self._priors[key] = prior_of({**self._lessons, **own}, width)
        return self._priors[key]

    def _lesson(self, task: str, rows: int, draw: int) -> Lesson:
        """The lesson of a task from so many of its rows, or all."""
        return lesson_from(task, shots(dataset_of(self._cells.folder, task), rows, draw), self._features)

    def _published(self, run: ArmRun) -> Learned:
        """The whole default, in a copy of the home that has learned earlier tasks."""
        home = self._work / f"{run.task}-{run.draw}-{run.arm}"
        shutil.rmtree(home, ignore_errors=True)
        if run.arm != DEFAULT:
            shutil.copytree(self._learned_home(run), home)
        try:
            learned = publish(home, self._cells.of(run))
        finally:
            shutil.rmtree(home, ignore_errors=True)
        return Learned(learned.answers, learned.seconds, {})

    def _learned_home(self, run: ArmRun) -> Path:
        """A home where the first half of the run's series was learned, in its order."""
        draw = 0 if run.arm == DEFAULT_ALL else run.draw
        home = self._work / f"{series_of(run.task)}-{draw}-{run.arm}"
        if not home.is_dir():
            rows = _ALL_ROWS if run.arm == DEFAULT_ALL else ROWS
            part = home.with_suffix(f".{os.getpid()}")
            shutil.rmtree(part, ignore_errors=True)
            for task in self._series[series_of(run.task)].first_half:
                publish(part, self._cells.of(replace(run, task=task, rows=rows, draw=draw)))
            with opened_home(part, self._cells.place) as services:
                refit_prior(services, self._cells.place.base)
            _as(part, home)
        return home


def _as(part: Path, home: Path) -> None:
    """Call a finished home by its name, unless another process was first."""
    try:
        part.rename(home)
    except OSError:
        shutil.rmtree(part)
