"""Use case: restore a backup into an empty service, on the database and store of the settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from onboard.bases import Base, find_base, named_bases
from onboard.contract.upkeep import BackupManifest, TableParts
from onboard.errors import DamagedError, NotFoundError, OnboardError
from onboard.operations.backup.archive import Archive, manifest_of, reading
from onboard.operations.backup.rows import unpack_rows
from onboard.operations.backup.transfer import Row, Tell, Transferred, missing_there, transfer
from onboard.registry.load import Contents, GoingOn, Loaded, Rows, load, require_empty
from onboard.registry.schema import make_home, require_known
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore, is_digest

NOTHING: Final = GoingOn()


@dataclass(frozen=True)
class RestoreResult:
    """The result of a restore.

    Args:
        loaded: what happened to running jobs, tokens and undelivered webhooks.
        bases: every base that the versions need, with its local folder or None.
    """

    manifest: BackupManifest
    artifacts: Transferred
    loaded: Loaded
    bases: list[dict[str, Any]]


def restore(settings: Settings, source: str, tell: Tell, going_on: GoingOn = NOTHING) -> RestoreResult:
    """Restore a backup into an empty service. The whole backup is checked before anything is written.

    Artifacts are copied first, then all rows are inserted in one transaction. An interrupted restore can be repeated.

    Args:
        source: folder, URL or zip file of a backup.
        tell: receives progress messages.
        going_on: what continues as it was when the backup was made.

    Raises:
        NotFoundError: there is no backup.
        DamagedError: it is incomplete, bytes do not match their digest, or rows do not fit. The database is unchanged.
        ConflictError: the service is not empty, or the backup is from a newer version.
        StorageError, NotAllowedError, UnavailableError: the service cannot be written or reached.
    """
    store, url = ArtifactStore(settings.resolved_artifact_url), settings.resolved_database_url
    with reading(source) as archive:
        manifest = manifest_of(archive, source)
        require_known(manifest.revision, "The backup's schema")
        require_empty(url)
        needed, existing_count = _check(archive, store, manifest, tell)
        if not settings.database_url:
            make_home(settings.resolved_home)
        copied = transfer(needed, archive, store, tell)
        if copied.absent:
            raise _damaged(copied.absent)
        copied.present += existing_count
        tell(f"database: {sum(table.rows for table in manifest.tables.values())} rows")
        contents = [
            Contents(name, table.last, _reader(archive, name, table)) for name, table in manifest.tables.items()
        ]
        loaded = load(url, manifest.revision, contents, going_on, manifest.created_at)
    bases = [{**base.to_json(), "folder": _folder_of(base.digest, settings.base)} for base in manifest.bases]
    return RestoreResult(manifest, copied, loaded, bases)


def _check(archive: Archive, store: ArtifactStore, manifest: BackupManifest, tell: Tell) -> tuple[list[Row], int]:
    """Read the whole backup. Returns the artifacts to copy, and how many exist already.

    Copied bytes have no rows at first. Garbage collection ignores them, because an empty service has fewer artifacts.
    """
    artifacts: Rows = []
    for name, table in manifest.tables.items():
        for rows in _reader(archive, name, table)():
            artifacts += rows if name == "artifacts" else []
    if not all(is_digest(row.get("digest")) and isinstance(row.get("kind"), str) for row in artifacts):
        raise DamagedError("backup-digest-invalid")
    absent = {artifact.digest for artifact in manifest.absent}
    available = [row for row in artifacts if row["digest"] not in absent]
    needed, lost = missing_there(available, archive, store, tell)
    if lost:
        raise _damaged(lost)
    return needed, len(available) - len(needed)


def _reader(archive: Archive, name: str, table: TableParts) -> Callable[[], Iterator[Rows]]:
    def read() -> Iterator[Rows]:
        count = 0
        for digest in table.parts:
            rows = unpack_rows(_get(archive, digest))
            count += len(rows)
            yield rows
        if count != table.rows:
            raise DamagedError("backup-row-count-differs", count=count, name=name, rows=table.rows)

    return read


def _get(archive: Archive, digest: str) -> bytes:
    try:
        return archive.get(digest)
    except (NotFoundError, DamagedError) as error:
        problem = "missing" if isinstance(error, NotFoundError) else "damaged"
        raise _damaged([{"digest": digest, "kind": "rows", "problem": problem}]) from error


def _damaged(hurt: list[dict[str, Any]]) -> DamagedError:
    first, more = hurt[0], f" and {len(hurt) - 1} more" if len(hurt) > 1 else ""
    return DamagedError(
        "backup-incomplete",
        damaged=hurt,
        digest=first["digest"],
        kind=first["kind"],
        problem=first["problem"],
        more=more,
    )


def _folder_of(digest: str, configured: str) -> str | None:
    """Return the local folder of the base with this digest; None if there is none."""
    finds: tuple[Callable[[], list[Base]], ...] = (lambda: [find_base(configured)], named_bases)
    for find in finds:
        with suppress(OnboardError):  # an unreadable base cannot be used
            for base in find():
                if base.digest == digest:
                    return str(base.folder)
    return None
