"""One training as a job does it: what rows that it has not seen say of it, and what it answers to the test rows.

The hypernetwork is not tuned here: the default is the embedding with its readout.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.rows import Row, packed
from bench.heldout.learned import claimed, trained_of
from bench.heldout.material import Cell
from bench.heldout.measures import measured
from bench.heldout.plan import ArmRun
from bench.methods.plan import DEFAULT, LINEAR, TFIDF
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.choose import Witnesses, measure, witnesses_of
from onboard.pipeline.evaluate import Judged
from onboard.pipeline.outputs import ProbeOutput, TrainOutput
from onboard.pipeline.own_weights import readout_alone
from onboard.registry.services import Services, open_services
from onboard.settings import Settings


class Lessons:
    """The learned tasks of a cell's rows; a readout alone is left by the default of the same cell."""

    def __init__(self) -> None:
        self._readouts: dict[tuple[str, int, int, str], Row] = {}

    def of(self, cell: Cell, run: ArmRun) -> Row:
        """The row of a run: score, bytes, numbers trained, seconds of the processor, and the losses that judge it."""
        if run.arm == TFIDF:
            return _bag_of_words(cell)
        if run.arm == LINEAR and run.cell in self._readouts:
            return self._readouts.pop(run.cell)
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(home=Path(folder), base=str(cell.place.base.folder), device="cpu")
            services = open_services(settings)
            try:
                return self._learned(services, cell, run)
            finally:
                services.close()

    def _learned(self, services: Services, cell: Cell, run: ArmRun) -> Row:
        method = "" if run.arm == DEFAULT else run.arm
        job = claimed(services, cell, method=method, tune_hypernetwork="never")
        started = time.process_time()
        attempt, probed, trained = trained_of(services, job)
        seconds = time.process_time() - started
        witnesses = witnesses_of(attempt.bench, trained)
        if run.arm == DEFAULT and (alone := readout_alone(trained)):
            self._readouts[run.cell] = _row(cell, attempt, probed, alone, witnesses) | {"seconds": 0.0}
        return _row(cell, attempt, probed, trained, witnesses) | {"seconds": round(seconds, 2)}


def _row(cell: Cell, attempt: Attempt, probed: ProbeOutput, trained: TrainOutput, witnesses: Witnesses | None) -> Row:
    judged = Judged(attempt.bench, attempt.job.spec, probed, trained, attempt.progress)
    return _told(cell, judged.tempered(judged.predict(cell.test))) | {
        "trained": trained.training.trained, **(_evidence(judged, trained, witnesses) if witnesses else {}),
    }  # fmt: skip


def _evidence(judged: Judged, trained: TrainOutput, witnesses: Witnesses) -> dict[str, Any]:
    tried = measure(judged, trained, witnesses)
    return {
        "stored_bytes": tried.stored_bytes, "losses": [round(float(loss), 4) for loss in tried.losses],
        "seen": None if tried.accuracy is None else round(tried.accuracy, 4),
    }  # fmt: skip


def _told(cell: Cell, probabilities: np.ndarray) -> Row:
    columns = np.array(cell.columns)
    right = columns[probabilities.argmax(1)] == cell.truth
    return {**measured(cell, probabilities), "test_rows": len(cell.test), "correct": packed(right)}


def _bag_of_words(cell: Cell) -> Row:
    from onboard.evaluate.baselines import predict_learned

    started = time.process_time()
    (answered,) = predict_learned(cell.dataset, cell.dataset.train, cell.test, cell.draw).values()
    return _told(cell, answered) | {"seconds": round(time.process_time() - started, 2)}
