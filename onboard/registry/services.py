"""What a use case works with: settings, registry, artifact store, device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.database import Database
from onboard.registry.schema import open_database
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore, digest_of


@dataclass(frozen=True, slots=True)
class Services:
    """Handed to every use case.

    Args:
        device: auto, cpu, cuda or cuda:N, as asked for.
    """

    settings: Settings
    database: Database
    artifacts: ArtifactStore
    device: str

    def store(self, data: bytes, kind: str) -> str:
        """Store bytes as an artifact and return their digest. The row is committed before the bytes are written.

        Call it outside of a write transaction (SQLite has one writer at a time).

        Raises:
            StorageError: the disk is full, or the store cannot be reached.
            NotAllowedError: the store is read-only for us.
        """
        with self.database.write() as session:
            ArtifactRepository(session).add(digest_of(data), kind, len(data))
        return self.artifacts.put(data, kind)

    def read(self, artifact: str) -> bytes:
        """The bytes that a row names, verified.

        Raises:
            DamagedError: they are damaged, or gone: what was asked for is there, so that is not the asker's mistake.
            StorageError: the store cannot be reached.
        """
        with _gone_is_damaged(artifact):
            return self.artifacts.get(artifact)

    def file(self, artifact: str) -> Path | None:
        """Where those bytes lie, verified, if the store is a folder; None in an object store. Raises as `read`."""
        with _gone_is_damaged(artifact):
            return self.artifacts.file(artifact)

    def close(self) -> None:
        """Close the database's connections."""
        self.database.dispose()


@contextmanager
def _gone_is_damaged(artifact: str) -> Iterator[None]:
    try:
        yield
    except NotFoundError as error:
        remedy = "restore it from a backup"
        outside = DamagedError.like(error.outside, remedy, digest=artifact)
        raise DamagedError.like(error, remedy, digest=artifact).hide(outside) from error


def open_services(settings: Settings, device: str | None = None) -> Services:
    """Open what the settings name. See `open_database` for what it raises.

    Raises:
        InputError: a database without a broker, or the reverse: half of a deployment would be on this machine alone.
    """
    if bool(settings.database_url) != bool(settings.broker_url):
        missing = "ONBOARD_BROKER_URL" if settings.database_url else "ONBOARD_DATABASE_URL"
        raise InputError("s3-key-incomplete", missing=missing)
    database, artifacts = open_database(settings), ArtifactStore(settings.resolved_artifact_url)
    if not settings.artifact_url:
        artifacts.close_to_others()
    return Services(settings=settings, database=database, artifacts=artifacts, device=device or settings.device)
