"""Snapshots of datasets, and what the stages of a job left."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from onboard.domain.job import Stage
from onboard.domain.task import SnapshotRecord
from onboard.errors import NotFoundError
from onboard.registry.clock import database_now
from onboard.registry.tables import SnapshotRow, StageOutputRow
from onboard.registry.upsert import insert_for


class SnapshotRepository:
    """The stored datasets, by the digest of their content."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, record: SnapshotRecord) -> None:
        """Remember a snapshot; one that is known stays as it is, and stays until the transaction ends."""
        values = {**asdict(record), "created_at": database_now()}
        self._session.execute(
            insert_for(self._session, SnapshotRow)
            .values(values)
            # changes nothing but holds the row, lest garbage collection takes it before the job names it
            .on_conflict_do_update(index_elements=["digest"], set_={"digest": record.digest})
        )

    def get(self, digest: str) -> SnapshotRecord:
        """The snapshot. Raises NotFoundError."""
        row = self._session.scalars(select(SnapshotRow).where(SnapshotRow.digest == digest)).one_or_none()
        if row is None:
            raise NotFoundError(f"There is no dataset {digest}.", digest=digest)
        return SnapshotRecord(
            digest=row.digest,
            artifact=row.artifact,
            row_hashes=row.row_hashes,
            kind=row.kind,  # type: ignore[arg-type]  # a plain string in SQL; only Kind is ever written
            labels=tuple(row.labels),
            rows=row.rows,
            name=row.name,
            created_at=row.created_at,
        )


class StageOutputRepository:
    """What finished stages left, by the digest of everything they depend on."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, key: str, job_id: str, stage: Stage, artifact: str) -> None:
        """Remember the artifact of a finished stage; a later one under the same key replaces it."""
        values = {"job": job_id, "stage": stage.value, "artifact": artifact, "created_at": database_now()}
        self._session.execute(
            insert_for(self._session, StageOutputRow)
            .values(key=key, **values)
            .on_conflict_do_update(index_elements=["key"], set_=values)
        )

    def get(self, key: str) -> str | None:
        """The digest of the artifact under this key, or None when the stage has to run."""
        return self._session.scalars(select(StageOutputRow.artifact).where(StageOutputRow.key == key)).one_or_none()
