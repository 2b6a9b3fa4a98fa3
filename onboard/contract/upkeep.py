"""The manifest of a backup, and the output of `onboard gc`, `onboard backup` and `onboard restore` with --json."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field

from onboard.contract.document import Document

Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]


class TableParts(Document):
    """A table in a backup.

    last: the last number that the database assigned to a row; 0 for tables without numbering.
    parts: digests of gzipped JSON lines, in the order of the rows.
    """

    rows: int
    last: int
    parts: tuple[Digest, ...]


class AbsentArtifact(Document):
    """An artifact that is missing or damaged in the service."""

    digest: Digest
    kind: str
    problem: str


class NeededBase(Document):
    """A base, and how many learned versions need it."""

    name: str
    digest: str
    versions: int


class PlacedBase(NeededBase):
    """A base with its folder on this machine; null if it is not here."""

    folder: str | None


class BackupManifest(Document):
    """The contents of a backup.

    database: URL of the database, without the password. A folder accepts backups of one service only.
    finished: false while the first backup is being written. created_at: the moment of the database snapshot.
    onboard: version and digest of the code that made it. revision: schema revision of the rows.
    tables: in an order in which rows can be inserted. artifacts: their number, and their total bytes.
    absent: artifacts that are not in the backup. bases: are not part of the backup.
    """

    model_config = ConfigDict(extra="forbid")

    database: str
    finished: bool
    created_at: str
    onboard: str
    revision: str
    tables: dict[str, TableParts]
    artifacts: dict[str, int]
    absent: tuple[AbsentArtifact, ...]
    bases: tuple[NeededBase, ...]

    @property
    def rows(self) -> dict[str, int]:
        """The number of rows by table."""
        return {name: table.rows for name, table in self.tables.items()}

    @classmethod
    def unfinished(cls, database: str) -> Self:
        """Return the manifest of a backup that is being written."""
        return cls(
            database=database, finished=False, created_at="", onboard="", revision="", tables={}, artifacts={},
            absent=(), bases=(),
        )  # fmt: skip


class Amount(Document):
    """A number of items and their total bytes."""

    count: int
    size_bytes: int = Field(alias="bytes")


class GarbageDocument(Document):
    """What a garbage collection deleted; in a dry run, what it would delete.

    artifacts: deleted files by kind; "unknown" are bytes without a row. rows: deleted rows by table.
    unfinished: files that killed processes left behind.
    damaged: required artifacts with missing bytes or another size. foreign: bytes without a row that were kept.
    """

    dry_run: bool
    older_than_hours: float
    freed: Amount
    artifacts: dict[str, Amount]
    unfinished: Amount
    rows: dict[str, int]
    damaged: tuple[dict[str, Any], ...]
    foreign: Amount


class CopiedDocument(Document):
    """The contents of a backup.

    rows: by table. artifacts: in total; copied: now; present: were there; absent: missing or damaged in the service.
    """

    created_at: str
    rows: dict[str, int]
    artifacts: dict[str, int]
    copied: Amount
    present: int
    absent: tuple[AbsentArtifact, ...]


class BackupDocument(CopiedDocument):
    """A backup that was made."""

    backup: str
    revision: str
    bases: tuple[NeededBase, ...]


class RestoredDocument(CopiedDocument):
    """A backup that was restored; requeued and cancelled are jobs that were unfinished in it."""

    backup_revision: str
    onboard: str
    requeued: tuple[str, ...]
    cancelled: tuple[str, ...]
    revoked_tokens: int
    kept_tokens: int
    dropped_webhooks: int
    bases: tuple[PlacedBase, ...]
