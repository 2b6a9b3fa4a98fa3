"""Rows that tests of the registry need before anything else can refer to them."""

from __future__ import annotations

from typing import Any

from onboard.domain.job import Job, JobSpec
from onboard.domain.task import BaseRecord, EmbeddingVersion, HypernetworkVersion, Task
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.versions import VersionRepository
from onboard.storage.artifacts import digest_of

ARTIFACT = digest_of(b"tensors")
BASE = digest_of(b"base")
BACKBONE = digest_of(b"backbone")
BLOCKED_SECONDS = 0.5  # for a thread that is to be held up by a lock


def sample_spec(task: str = "colours", **options: object) -> JobSpec:
    return JobSpec(task=task, dataset=digest_of(b"rows"), options=dict(options))


def sample_task(name: str = "colours", labels: tuple[str, ...] = ("blue", "red")) -> Task:
    return Task(name=name, kind="classification", labels=labels, words=labels)


def sample_version(task: str = "colours", job: str | None = None, base: str = BASE) -> EmbeddingVersion:
    return EmbeddingVersion(
        task=task,
        kind="onboarded" if job else "source",
        artifact=ARTIFACT,
        embedding_digest=ARTIFACT,
        backbone_digest=BACKBONE,
        base_digest=base,
        hypernetwork_version=1,
        dataset_digest=digest_of(b"rows"),
        parent="random",
        task_kind="classification",
        labels=("blue", "red"),
        words=("blue", "red"),
        code_version="0.1.0",
        seeds=(0,),
        job=job,
    )


def sample_base(digest: str = BASE) -> tuple[BaseRecord, HypernetworkVersion]:
    record = BaseRecord(digest=digest, name="tiny", location="/nowhere", backbone_digest=BACKBONE, document={})
    return record, HypernetworkVersion(base_digest=digest, version=1, artifact=ARTIFACT, digest=ARTIFACT)


def register_sample_base(database: Database) -> None:
    with database.write() as session:
        ArtifactRepository(session).add(ARTIFACT, "test", 7)
        BaseRepository(session).register(*sample_base(), [])


def add_job(database: Database, task: str = "colours", **options: Any) -> Job:
    """A job that is queued; `options` are those of `JobRepository.add`."""
    with database.write() as session:
        return JobRepository(session).add(sample_spec(task), **options)[0]


def claim_job(database: Database, worker: str = "w1", queue: str = "default", **options: Any) -> Job:
    """The next job of the queue, in the hands of a worker."""
    with database.write() as session:
        job = ClaimRepository(session).claim(worker, [queue], **options)
    assert job is not None
    return job


def job_now(database: Database, job: Job) -> Job:
    """The job as it stands by now."""
    with database.read() as session:
        return JobRepository(session).get(job.id)


def running_job(database: Database, task: str = "colours") -> Job:
    add_job(database, task)
    return claim_job(database)


def publish(database: Database, task: str = "colours", **options: bool) -> EmbeddingVersion:
    job = running_job(database, task)
    with database.write() as session:
        return VersionRepository(session).publish(
            sample_version(task, job=job.id), sample_task(task), attempt=job.attempt, result={"task": task}, **options
        )
