"""A job as it is submitted, run by the pipeline in a separate home: what it publishes, and its embedding alone."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.harness.rows import Row
from bench.heldout.material import Cell, LoadedBase
from onboard.domain.job import Job, JobSpec, Stage
from onboard.domain.task import EmbeddingVersion, words_in_order
from onboard.hypernetworks.engines import engine_at
from onboard.jobs.submit import JobRequest, submit
from onboard.model.batched import log_probabilities
from onboard.pipeline import run as pipeline
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.check import check_stage
from onboard.pipeline.outputs import ProbeOutput, TrainOutput
from onboard.pipeline.probe import probe_stage
from onboard.pipeline.train import train_stage
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.testing import MemoryDoorbell, RecordedProgress
from onboard.versions.answers import answers, task_of_version

_LEASE_SECONDS: Final = 1e6  # nobody else is there


@dataclass(frozen=True)
class Learned:
    """The result of a job, or of its first stages.

    Args:
        answers: probabilities (m, K) of the test rows in the draw's labels; of a regression values (m,).
        seconds: of the processor, for learning.
        facts: for the row.
    """

    answers: np.ndarray
    seconds: float
    facts: Row


@dataclass(frozen=True)
class Lessons:
    """The embedding of a job, and what the whole of the same job publishes where that is requested.

    Args:
        embedding: after probe and training, answering alone.
        published: of the job at its end; None if it was not requested.
    """

    embedding: Learned
    published: Learned | None


def learn(cell: Cell, init: str, *, whole: bool) -> Lessons:
    """Submit the rows of a cell to an empty home, and work there.

    Args:
        cell: the rows.
        init: "auto" or "random".
        whole: whether the job goes on to its end; else it is left after its training.
    """
    with tempfile.TemporaryDirectory() as folder, opened_home(Path(folder), cell.place) as services:
        job = claimed(services, cell, init=init)
        embedding = _embedding(services, cell, job)
        return Lessons(embedding, _published(services, cell, job, embedding) if whole else None)


def publish(home: Path, cell: Cell) -> Learned:
    """Submit the rows of a cell to a home that may have learned other tasks, work there, and answer the test rows."""
    with opened_home(home, cell.place) as services:
        job = claimed(services, cell, init="auto")
        return _published(services, cell, job, _embedding(services, cell, job))


@contextmanager
def opened_home(home: Path, place: LoadedBase) -> Iterator[Services]:
    """The services of a home on a place's base."""
    services = open_services(Settings(home=home, base=str(place.base.folder), device=place.device))
    try:
        yield services
    finally:
        services.close()


def claimed(services: Services, cell: Cell, **asked: Any) -> Job:
    """The rows of a cell submitted with what else is asked, and the job taken as a worker takes it."""
    spec = JobSpec(task=cell.task, dataset="", base=services.settings.base, seed=cell.draw, **asked)
    submit(services, MemoryDoorbell(), JobRequest(cell.checked, spec))
    with services.database.write() as session:
        job = ClaimRepository(session).claim("bench", ["default"], lease_seconds=_LEASE_SECONDS)
    assert job is not None
    return job


def trained_of(services: Services, job: Job) -> tuple[Attempt, ProbeOutput, TrainOutput]:
    """A job after check, probe and training, whose outputs are stored: it may go on from there."""
    attempt = check_stage(job, services, RecordedProgress())
    probed = attempt.stage(Stage.PROBE, ProbeOutput.from_json, lambda: probe_stage(attempt))
    attempt.bench = attempt.bench.without_witnesses(probed.known)
    trained = attempt.stage(Stage.TRAIN, TrainOutput.from_json, lambda: train_stage(attempt, probed), probed)
    return attempt, probed, trained


def _embedding(services: Services, cell: Cell, job: Job) -> Learned:
    """The embedding alone, after its training."""
    started = time.process_time()
    attempt, probed, trained = trained_of(services, job)
    seconds, bench = time.process_time() - started, attempt.bench
    scores = log_probabilities(bench.engine, bench.encode(cell.test), trained.z, bench.engine.trie(probed.words))
    probabilities = np.exp(scores).astype(np.float64)
    if bench.buckets is not None:
        probabilities = probabilities @ np.array(bench.buckets.values)
    return Learned(probabilities, seconds, {"init": probed.init.to_json()})


def _published(services: Services, cell: Cell, job: Job, embedding: Learned) -> Learned:
    started = time.process_time()
    pipeline.run(job, services, RecordedProgress())
    seconds = embedding.seconds + time.process_time() - started
    with services.database.read() as session:
        result = JobRepository(session).get(job.id).result
        assert result is not None
        version = VersionRepository(session).resolve(f"{cell.task}@v{result['version']}")  # of the last, if of several
    engine = engine_at(services, cell.place.base, version.hypernetwork_version)
    labels = cell.dataset.labels
    words = version.words if cell.regression else words_in_order(version, labels)
    task, readout = task_of_version(services, engine, version, None if cell.regression else labels)
    answered = answers(engine, version, task, words, cell.test, readout)
    return Learned(answered, seconds, {"init": embedding.facts["init"], **_stages(result, version)})


def _stages(result: Mapping[str, Any], version: EmbeddingVersion) -> Row:
    """The job's document about readout and tuning."""
    tuning, readout = result.get("tuning") or {}, result.get("readout") or {}
    return {
        "share": 1.0 if version.content == "readout" else readout.get("share", 0.0),
        "tuning_tried": bool(tuning.get("tried")),
        "tuning_kept": bool(tuning.get("kept")), "weak": bool(result["weak"]),
    }  # fmt: skip
