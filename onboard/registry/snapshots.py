"""Snapshots of datasets, and what the stages of a job left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from sqlalchemy import ColumnElement, and_, select

from onboard.domain.job import Stage
from onboard.domain.task import SnapshotRecord
from onboard.errors import NotFoundError
from onboard.registry.clock import database_now
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import EmbeddingVersionRow, JobRow, SnapshotRow, StageOutputRow
from onboard.registry.upsert import insert_for, put_row

# the datasets that a job's request names: what it learns from, the texts of which it is to say which to label next, and
# the rows that an earlier dataset was changed by
DATASETS_OF_JOB = (
    JobRow.spec["dataset"].as_string(),
    JobRow.spec[("options", "unlabelled", "digest")].as_string(),
    JobRow.spec[("options", "change", "rows")].as_string(),
)


def unnamed_snapshots() -> ColumnElement[bool]:
    """Whether neither a version nor a job names the dataset of a row (any more)."""
    named = [
        select(EmbeddingVersionRow.dataset_digest),
        *(select(column).where(column.is_not(None)) for column in DATASETS_OF_JOB),
    ]
    return and_(*(SnapshotRow.digest.not_in(statement) for statement in named))


class SnapshotRepository(Repository):
    """The stored datasets, by the digest of their content."""

    def add(self, record: SnapshotRecord) -> None:
        """Remember a snapshot; of one that is known only the time is new, and it stays until the transaction ends."""
        values = {**asdict(record), "created_at": database_now()}
        self._session.execute(
            insert_for(self._session, SnapshotRow)
            .values(values)
            # holds the row, lest garbage collection takes it before the job names it; and tells from then on that its
            # artifacts, which were announced anew before this, are not somebody else's who has not come here yet
            .on_conflict_do_update(index_elements=["digest"], set_={"created_at": values["created_at"]})
        )

    def get(self, digest: str) -> SnapshotRecord:
        """The snapshot. Raises NotFoundError."""
        row = self._session.scalars(select(SnapshotRow).where(SnapshotRow.digest == digest)).one_or_none()
        if row is None:
            raise NotFoundError("unknown-dataset", digest=digest)
        return record_of(SnapshotRecord, row)


class StageOutputRepository(Repository):
    """What finished stages left, by the digest of everything they depend on."""

    def put(self, key: str, job_id: str, stage: Stage, artifact: str) -> None:
        """Remember the artifact of a finished stage; a later one under the same key replaces it."""
        values = {"job": job_id, "stage": stage.value, "artifact": artifact, "created_at": database_now()}
        put_row(self._session, StageOutputRow, {"key": key}, values)

    def of_task(self, task: str) -> Sequence[tuple[str, float]]:
        """The artifacts that stages of the task's jobs left, and when."""
        mine = select(JobRow.id).where(JobRow.task == task)
        statement = select(StageOutputRow.artifact, StageOutputRow.created_at).where(StageOutputRow.job.in_(mine))
        return [(artifact, at) for artifact, at in self._session.execute(statement)]

    def get(self, key: str) -> str | None:
        """The digest of the artifact under this key, or None when the stage has to run."""
        return self._session.scalars(select(StageOutputRow.artifact).where(StageOutputRow.key == key)).one_or_none()
