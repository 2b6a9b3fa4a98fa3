"""Use case: copy database and artifacts of a running service, consistent at one point in time."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import make_url

import migrations
from onboard.contract.upkeep import AbsentArtifact, BackupManifest, NeededBase, TableParts
from onboard.domain.moment import to_iso
from onboard.domain.release import code_version
from onboard.errors import ConflictError
from onboard.operations.backup.archive import Archive, writing
from onboard.operations.backup.rows import ROWS, pack_rows
from onboard.operations.backup.transfer import Tell, Transferred, transfer
from onboard.operations.lock import alone
from onboard.registry import dump
from onboard.registry.database import allow_pauses
from onboard.registry.services import Services
from onboard.registry.tables import ArtifactRow
from onboard.storage.artifacts import ArtifactStore

if TYPE_CHECKING:
    from sqlalchemy import Table
    from sqlalchemy.orm import Session


def back_up(services: Services, target: str, tell: Tell) -> tuple[BackupManifest, Transferred]:
    """Write a backup of the service. Jobs continue meanwhile; garbage collection waits.

    Args:
        target: a folder, an fsspec URL, or a file name ending in .zip.
        tell: receives progress messages.

    Raises:
        ConflictError: the target contains other files, or other maintenance is running.
        StorageError, NotAllowedError: the target cannot be written. An earlier backup there is left unchanged.
    """
    database = make_url(services.database.url).render_as_string(hide_password=True)
    if not target.endswith(".zip") and ArtifactStore(target).root == services.artifacts.root:
        raise ConflictError("backup-into-store", target=target)
    with alone(services.database, "backup") as keep, writing(target, database) as archive:
        with services.database.snapshot() as session:
            allow_pauses(session)
            created_at, rows = time.time(), _Rows(session, archive, keep)
            bases = tuple(map(NeededBase.of, dump.bases_in_use(session)))
        tell(f"database: {sum(table.rows for table in rows.tables.values())} rows of {len(rows.tables)} tables")
        copied = transfer(rows.artifacts, services.artifacts, archive, tell, keep)
        manifest = BackupManifest(
            database=database,
            finished=True,
            created_at=to_iso(created_at) or "",
            onboard=code_version(),
            revision=migrations.HEAD,
            tables=rows.tables,
            artifacts={"count": len(rows.artifacts), "bytes": sum(row["size_bytes"] for row in rows.artifacts)},
            absent=tuple(AbsentArtifact(**artifact) for artifact in copied.absent),
            bases=bases,
        )
        archive.finish(manifest, rows.named)
    return manifest, copied


class _Rows:
    """Writes every table to the archive, as the session's snapshot shows it.

    Attributes:
        tables: entries for the manifest.
        artifacts: the rows of the artifacts to copy.
    """

    def __init__(self, session: Session, archive: Archive, keep: Callable[[], None]) -> None:
        self._archive, self._keep = archive, keep
        self.artifacts: list[dict[str, Any]] = []
        self.tables = {table.name: self._table(session, table) for table in dump.tables()}

    @property
    def named(self) -> set[str]:
        """The digests of all contents of the backup."""
        parts = {digest for table in self.tables.values() for digest in table.parts}
        return parts | {row["digest"] for row in self.artifacts}

    def _table(self, session: Session, table: Table) -> TableParts:
        parts, count, rows = [], 0, dump.rows(session, table)
        while batch := list(islice(rows, ROWS)):
            self._keep()
            parts.append(self._archive.put(pack_rows(batch), f"part of {table.name}"))
            count += len(batch)
            if table is ArtifactRow.__table__:
                self.artifacts += batch
        return TableParts(rows=count, last=dump.last_number(session, table), parts=tuple(parts))
