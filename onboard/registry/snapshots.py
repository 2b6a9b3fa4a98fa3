"""Snapshots of datasets, and outputs of job stages."""

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

# The datasets in a job's request: its training rows, unlabeled texts to choose from, and the rows of a change to an
# earlier dataset.
DATASETS_OF_JOB = (
    JobRow.spec["dataset"].as_string(),
    JobRow.spec[("options", "unlabelled", "digest")].as_string(),
    JobRow.spec[("options", "change", "rows")].as_string(),
)


def unnamed_snapshots() -> ColumnElement[bool]:
    """Condition: no version or job refers to a dataset (any more)."""
    named = [
        select(EmbeddingVersionRow.dataset_digest),
        *(select(column).where(column.is_not(None)) for column in DATASETS_OF_JOB),
    ]
    return and_(*(SnapshotRow.digest.not_in(statement) for statement in named))


class SnapshotRepository(Repository):
    """The stored datasets, by the digest of their content."""

    def add(self, record: SnapshotRecord) -> None:
        """Add a snapshot. For an existing one, the time is updated and its row locked until the transaction ends."""
        values = {**asdict(record), "created_at": database_now()}
        self._session.execute(
            insert_for(self._session, SnapshotRow)
            .values(values)
            # Locks the row, so that garbage collection does not delete it before the job refers to it. The new time
            # also shows that its artifacts were not announced for a later submit.
            .on_conflict_do_update(index_elements=["digest"], set_={"created_at": values["created_at"]})
        )

    def get(self, digest: str) -> SnapshotRecord:
        """Return a snapshot. Raises NotFoundError."""
        row = self._session.scalars(select(SnapshotRow).where(SnapshotRow.digest == digest)).one_or_none()
        if row is None:
            raise NotFoundError("unknown-dataset", digest=digest)
        return record_of(SnapshotRecord, row)


class StageOutputRepository(Repository):
    """Outputs of finished stages, by the digest of everything they depend on."""

    def put(self, key: str, job_id: str, stage: Stage, artifact: str) -> None:
        """Store the artifact of a finished stage, replacing an earlier one with the same key."""
        values = {"job": job_id, "stage": stage.value, "artifact": artifact, "created_at": database_now()}
        put_row(self._session, StageOutputRow, {"key": key}, values)

    def of_task(self, task: str) -> Sequence[tuple[str, float]]:
        """Return the artifacts of stage outputs of the task's jobs, and their times."""
        mine = select(JobRow.id).where(JobRow.task == task)
        statement = select(StageOutputRow.artifact, StageOutputRow.created_at).where(StageOutputRow.job.in_(mine))
        return [(artifact, at) for artifact, at in self._session.execute(statement)]

    def get(self, key: str) -> str | None:
        """Return the artifact's digest under this key, or None if the stage has to run."""
        return self._session.scalars(select(StageOutputRow.artifact).where(StageOutputRow.key == key)).one_or_none()
