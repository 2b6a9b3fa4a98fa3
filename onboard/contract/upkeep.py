"""The output of `onboard gc`, `onboard backup` and `onboard restore` with --json."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from onboard.contract.document import Document


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
    absent: tuple[dict[str, Any], ...]
    bases: tuple[dict[str, Any], ...]


class BackupDocument(CopiedDocument):
    """A backup that was made."""

    backup: str
    revision: str


class RestoredDocument(CopiedDocument):
    """A backup that was restored; requeued and cancelled are jobs that were unfinished in it."""

    backup_revision: str
    onboard: str
    requeued: tuple[str, ...]
    cancelled: tuple[str, ...]
    revoked_tokens: int
    kept_tokens: int
    dropped_webhooks: int
