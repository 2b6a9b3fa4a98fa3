"""Rows that tests of the registry need before anything else can refer to them."""

from __future__ import annotations

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


def running_job(database: Database, task: str = "colours") -> Job:
    with database.write() as session:
        JobRepository(session).add(sample_spec(task))
        job = ClaimRepository(session).claim("w1", ["default"])
    assert job is not None
    return job


def publish(database: Database, task: str = "colours", **options: bool) -> EmbeddingVersion:
    job = running_job(database, task)
    with database.write() as session:
        return VersionRepository(session).publish(
            sample_version(task, job=job.id), sample_task(task), attempt=job.attempt, result={"task": task}, **options
        )
