"""Jobs of measured length that compute nothing (`--pipeline bench.fleet.pipeline`).

The stages sleep for as long as `options.sleep` of the job says. Everything else is that of a real job: claim, lease,
heartbeats, events, the version and its file, the end of the job in the transaction that publishes it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from bench.harness.deployed import MANY
from onboard.domain.job import Job, Stage
from onboard.domain.names import LATEST
from onboard.domain.progress import Progress
from onboard.domain.task import EmbeddingVersion, Task
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository

LABELS: Final = ("no", "yes")
_STEP_SECONDS: Final = 0.5  # between two checks whether the job was cancelled
_NOTE_SECONDS: Final = 5.0  # between two lines of progress
_EMBEDDING_BYTES: Final = 4_096
_RESULT_NUMBERS: Final = 400  # losses in a result


def preload(services: Services) -> None:
    """Nothing is needed."""


def run(job: Job, services: Services, progress: Progress) -> None:
    """Sleep through the stages of a claimed job, and publish a version."""
    seconds: dict[str, float] = job.spec.options["sleep"]
    for stage in (Stage(name) for name in seconds):
        progress.stage_started(stage)
        _sleep(seconds[stage], progress)
        progress.stage_finished(stage, seconds[stage], {"loss": 0.5})
    _publish(job, services, seconds)


def _sleep(seconds: float, progress: Progress) -> None:
    ends = time.monotonic() + seconds
    note_at = time.monotonic() + _NOTE_SECONDS
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, _STEP_SECONDS))
        progress.raise_if_cancelled_or_fenced()
        if time.monotonic() >= note_at:
            progress.note("step", loss=0.5)
            note_at += _NOTE_SECONDS


def _publish(job: Job, services: Services, seconds: dict[str, float]) -> None:
    stored = services.store(job.id.encode().ljust(_EMBEDDING_BYTES, b"\0"), "embedding")
    with services.database.read() as session:
        present = AliasRepository(session).find(job.spec.task, LATEST) or 0
        version = _version(VersionRepository(session), job, stored)
    result = {
        "job": job.id, "state": "succeeded", "task": job.spec.task, "metrics": {"accuracy": 0.5}, "seconds": seconds,
        "training": {"loss": [0.5] * _RESULT_NUMBERS}, "latest": {"alias": LATEST, "moved": True},
    }  # fmt: skip
    task = Task(job.spec.task, "classification", LABELS, LABELS)
    with services.database.write() as session:
        VersionRepository(session).publish(version, task, attempt=job.attempt, result=result, present=present)


def _version(versions: VersionRepository, job: Job, artifact: str) -> EmbeddingVersion:
    """A version like the first one of a source, made by this job."""
    source = versions.resolve(f"{MANY}@v1")
    return replace(
        source, task=job.spec.task, version=versions.next_number(job.spec.task), kind="onboarded", job=job.id,
        labels=LABELS, words=LABELS, artifact=artifact, dataset_digest=job.spec.dataset,
    )  # fmt: skip
