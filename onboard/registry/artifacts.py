"""The rows of artifacts. A row is written before its bytes, so that all bytes have a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, and_, delete, exists, select, true, update

from onboard.registry.clock import database_now
from onboard.registry.database import allow_pauses
from onboard.registry.quota_tables import OwnedArtifactRow
from onboard.registry.repository import Repository
from onboard.registry.tables import ArtifactRow, Table
from onboard.registry.upsert import insert_for

UNKNOWN = "unknown"  # kind of bytes that had no row
_OUTDATED = 0.0  # creation time that makes an artifact due at once

# Every column that keeps an artifact alive, derived from the foreign keys, so that no new table is forgotten.
REFERENCES: tuple[Column[str], ...] = tuple(
    key.parent
    for table in Table.metadata.sorted_tables
    for key in sorted(table.foreign_keys, key=lambda reference: reference.parent.name)
    if key.references(ArtifactRow.__table__)  # type: ignore[arg-type]  # declared as FromClause, is a Table
)


@dataclass(frozen=True, slots=True)
class ArtifactRecord:
    """The row of an artifact.

    Args:
        kind: "embedding", "hypernetwork", "snapshot", "row_hashes", "stage_output", …
        referenced: whether a row of another table refers to it.
    """

    digest: str
    kind: str
    size_bytes: int
    referenced: bool = False


class ArtifactRepository(Repository):
    """The contents of the artifact store, and the references to them."""

    def add(self, digest: str, kind: str, size_bytes: int) -> None:
        """Announce bytes that are about to be stored. Repeating this resets their age.

        Either way the row is locked until the transaction ends. Garbage collection waits and then finds a recent row.
        """
        self._session.execute(
            insert_for(self._session, ArtifactRow)
            .values(digest=digest, kind=kind, size_bytes=size_bytes, created_at=database_now())
            .on_conflict_do_update(index_elements=["digest"], set_={"created_at": database_now()})
        )

    def adopt(self, digest: str, size_bytes: int, written_at: float) -> None:
        """Add a row for bytes without one, so that they are collected like others. An existing row is kept."""
        self._session.execute(
            insert_for(self._session, ArtifactRow)
            .values(digest=digest, kind=UNKNOWN, size_bytes=size_bytes, created_at=written_at)
            .on_conflict_do_nothing(index_elements=["digest"])
        )

    def beginning_with(self, start: str) -> Sequence[ArtifactRecord]:
        """Return every artifact with a digest that starts with these hexadecimal characters."""
        first, end = f"sha256:{start}", f"sha256:{start}g"  # no digest contains a g
        statement = select(ArtifactRow.digest, ArtifactRow.kind, ArtifactRow.size_bytes, is_referenced()).where(
            ArtifactRow.digest >= first, ArtifactRow.digest < end
        )
        return [ArtifactRecord(*row) for row in self._session.execute(statement)]

    def outdate(self, digests: Mapping[str, float]) -> None:
        """Make artifacts due for collection as soon as nothing refers to them.

        Args:
            digests: time of the last reference by digest. Artifacts announced later are about to be used and are kept.
        """
        for digest, at in digests.items():
            known = and_(ArtifactRow.digest == digest, ArtifactRow.created_at <= at)
            self._session.execute(update(ArtifactRow).where(known).values(created_at=_OUTDATED))

    def outdated(self, digests: Collection[str]) -> Sequence[ArtifactRecord]:
        """Return those that were outdated and that nothing refers to."""
        statement = select(ArtifactRow.digest, ArtifactRow.kind, ArtifactRow.size_bytes).where(
            ArtifactRow.digest.in_(digests), ArtifactRow.created_at == _OUTDATED, *_unreferenced()
        )
        return [ArtifactRecord(*row) for row in self._session.execute(statement)]

    def collect(
        self, older_than_seconds: float, limit: int, among: Collection[str] | None = None
    ) -> Sequence[ArtifactRecord]:
        """Delete the rows of up to `limit` artifacts that nothing refers to and that are older than a given age.

        Rows are locked before the conditions are checked again, and stay locked until the transaction ends. Other
        transactions that announce or reference the same bytes wait. Therefore delete the bytes within this transaction.
        Rows locked by other transactions are in use and skipped.

        Args:
            among: only these; None for all.
        """
        allow_pauses(self._session)  # otherwise the locks could be lost while the store deletes
        selected = true() if among is None else ArtifactRow.digest.in_(among)
        due = and_(selected, ArtifactRow.created_at <= database_now() - older_than_seconds, *_unreferenced())
        locked = self._session.scalars(
            select(ArtifactRow.digest).where(due).limit(limit).with_for_update(skip_locked=True)
        ).all()
        statement = (
            delete(ArtifactRow)
            .where(ArtifactRow.digest.in_(locked), due)  # a new statement sees commits from before the lock
            .returning(ArtifactRow.digest, ArtifactRow.kind, ArtifactRow.size_bytes)
        )
        collected = [ArtifactRecord(*row) for row in self._session.execute(statement)]
        digests = [artifact.digest for artifact in collected]
        self._session.execute(delete(OwnedArtifactRow).where(OwnedArtifactRow.artifact.in_(digests)))
        return collected

    def users(self, digest: str) -> list[str]:
        """Return the rows that refer to the artifact, as table and primary key: "embedding_versions mood 3"."""
        references = []
        for column in REFERENCES:
            keys = self._session.execute(select(*column.table.primary_key.columns).where(column == digest))
            references += [" ".join(map(str, (column.table.name, *key))) for key in keys]
        return references


def is_referenced() -> ColumnElement[bool]:
    """Condition: a row of another table refers to the artifact."""
    return ~and_(*_unreferenced())


def _unreferenced() -> list[ColumnElement[bool]]:
    return [~exists().where(column == ArtifactRow.digest) for column in REFERENCES]
