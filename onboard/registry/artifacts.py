"""The rows of artifacts. A row is written before its bytes, so that no bytes are ever unknown."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, and_, delete, exists, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from onboard.registry.clock import database_now
from onboard.registry.tables import ArtifactRow, EmbeddingVersionRow, HypernetworkRow, SnapshotRow, StageOutputRow
from onboard.registry.upsert import insert_for

# every column that keeps an artifact alive; a test compares it with the foreign keys
REFERENCES: tuple[InstrumentedAttribute[str], ...] = (
    HypernetworkRow.artifact,
    SnapshotRow.artifact,
    SnapshotRow.row_hashes,
    StageOutputRow.artifact,
    EmbeddingVersionRow.artifact,
)


class ArtifactRepository:
    """What the artifact store holds, and what still needs it."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, digest: str, kind: str, size_bytes: int) -> None:
        """Announce bytes that are about to be stored; announcing them again makes them young again."""
        self._session.execute(
            insert_for(self._session, ArtifactRow)
            .values(digest=digest, kind=kind, size_bytes=size_bytes, created_at=database_now())
            .on_conflict_do_update(index_elements=["digest"], set_={"created_at": database_now()})
        )

    def unreferenced(self, older_than_seconds: float) -> Sequence[str]:
        """Digests that nothing refers to and that were announced longer ago than `older_than_seconds`."""
        return self._session.scalars(
            select(ArtifactRow.digest).where(
                ArtifactRow.created_at <= database_now() - older_than_seconds, *_unreferenced()
            )
        ).all()

    def delete(self, digest: str, older_than_seconds: float) -> bool:
        """Forget an artifact if it is still unreferenced and old; delete its bytes in the same transaction if True."""
        statement = delete(ArtifactRow).where(
            and_(
                ArtifactRow.digest == digest,
                ArtifactRow.created_at <= database_now() - older_than_seconds,
                *_unreferenced(),
            )
        )
        return self._session.scalars(statement.returning(ArtifactRow.digest)).one_or_none() is not None


def _unreferenced() -> list[ColumnElement[bool]]:
    return [~exists().where(column == ArtifactRow.digest) for column in REFERENCES]
