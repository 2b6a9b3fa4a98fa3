"""What garbage collection looks at: artifacts, files and jobs that are as old as a test wants them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from sqlalchemy import func, select, update

from onboard.domain.job import Job, JobState, Stage
from onboard.registry.bases import BaseRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import StageOutputRepository
from onboard.registry.tables import ArtifactRow, JobEventRow, JobRow, SnapshotRow, StageOutputRow
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore
from support.registry_samples import sample_base, sample_spec, sample_task, sample_version

HOUR, DAY = 3600.0, 86_400.0


def service_on(database: Database, home: Path) -> Services:
    """A service of either database with a registered base; its hypernetwork is an artifact that is needed."""
    services = Services(Settings(home=home), database, ArtifactStore(str(home / "artifacts")), "cpu")
    services.store(b"tensors", "hypernetwork")
    with database.write() as session:
        BaseRepository(session).register(*sample_base(), [])
    return services


def with_retention(service: Services, **days: int) -> Services:
    settings = service.settings.model_copy(update={f"retention_{name}_days": count for name, count in days.items()})
    return Services(settings, service.database, service.artifacts, service.device)


def path_of(service: Services, digest: str) -> Path:
    name = digest.removeprefix("sha256:")
    return Path(service.artifacts.url) / "sha256" / name[:2] / name


def make_old(service: Services, *digests: str, hours: float = 25.0) -> None:
    """As if announced so long ago."""
    with service.database.write() as session:
        made = ArtifactRow.created_at - hours * HOUR
        session.execute(update(ArtifactRow).where(ArtifactRow.digest.in_(digests)).values(created_at=made))


def store(service: Services, data: bytes, hours_ago: float = 25.0) -> str:
    digest = service.store(data, "test")
    make_old(service, digest, hours=hours_ago)
    return digest


def put_without_row(service: Services, data: bytes, hours_ago: float) -> str:
    digest = service.artifacts.put(data, "test")
    written = time.time() - hours_ago * HOUR
    os.utime(path_of(service, digest), (written, written))
    return digest


def ended_job(service: Services, state: JobState, days_ago: float, task: str = "colours", **spec: Any) -> Job:
    """A job with a note and a stage in its log, and one stage output, that ended so long ago."""
    output = service.store(f"{task}-{state}-{days_ago}".encode(), "stage_output")
    with service.database.write() as session:
        JobRepository(session).add(sample_spec(task, **spec))
        job = ClaimRepository(session).claim("w1", ["default"])
        assert job is not None
        ClaimRepository(session).append(job.id, job.attempt, "note", "train step 10/100")
        ClaimRepository(session).append(job.id, job.attempt, "stage_finished", "train", stage=Stage.TRAIN)
        StageOutputRepository(session).put(f"key-{job.id}", job.id, Stage.TRAIN, output)
        if state is JobState.SUCCEEDED:
            draft, result = sample_version(task, job=job.id), {"task": task}
            VersionRepository(session).publish(draft, sample_task(task), attempt=job.attempt, result=result)
        else:
            ClaimRepository(session).finish(job.id, job.attempt, state)
        ended = JobRow.finished_at - days_ago * DAY
        session.execute(update(JobRow).where(JobRow.id == job.id).values(finished_at=ended))
    make_old(service, output, hours=days_ago * 24)
    return job


def count(service: Services, table: type) -> int:
    with service.database.read() as session:
        return session.scalars(select(func.count()).select_from(table)).one()


def counts(service: Services) -> list[int]:
    return [count(service, table) for table in (ArtifactRow, JobRow, JobEventRow, StageOutputRow, SnapshotRow)]


def digests(service: Services) -> set[str]:
    """What has a row, and has to have bytes."""
    with service.database.read() as session:
        known = set(session.scalars(select(ArtifactRow.digest)))
    assert all(service.artifacts.intact(digest) for digest in known)
    return known
