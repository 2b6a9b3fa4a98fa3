"""The services of use cases: settings, registry, artifact store, device."""

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
    """Passed to every use case.

    Args:
        device: auto, cpu, cuda or cuda:N, as configured.
    """

    settings: Settings
    database: Database
    artifacts: ArtifactStore
    device: str

    def store(self, data: bytes, kind: str) -> str:
        """Store bytes as an artifact and return their digest. The row is committed before the bytes are written.

        Call this outside of a write transaction (SQLite has a single writer).

        Raises:
            StorageError: the disk is full, or the store cannot be reached.
            NotAllowedError: the store is read-only for this process.
        """
        with self.database.write() as session:
            ArtifactRepository(session).add(digest_of(data), kind, len(data))
        return self.artifacts.put(data, kind)

    def read(self, artifact: str) -> bytes:
        """Return the bytes of an artifact, verified.

        Raises:
            DamagedError: they are damaged or missing. A missing artifact with a row is not the caller's mistake.
            StorageError: the store cannot be reached.
        """
        with _gone_is_damaged(artifact):
            return self.artifacts.get(artifact)

    def file(self, artifact: str) -> Path | None:
        """Return the local path of an artifact, verified; None in an object store. Raises as `read`."""
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
        remedy = "Restore it from a backup."
        outside = DamagedError.like(error.outside, remedy, digest=artifact)
        raise DamagedError.like(error, remedy, digest=artifact).hide(outside) from error


def open_services(settings: Settings, device: str | None = None) -> Services:
    """Open the services of the settings. See `open_database` for other errors.

    Raises:
        InputError: a database without a broker, or a broker without a database.
    """
    if bool(settings.database_url) != bool(settings.broker_url):
        missing = "ONBOARD_BROKER_URL" if settings.database_url else "ONBOARD_DATABASE_URL"
        raise InputError("s3-key-incomplete", missing=missing)
    database, artifacts = open_database(settings), ArtifactStore(settings.resolved_artifact_url)
    if not settings.artifact_url:
        artifacts.close_to_others()
    return Services(settings=settings, database=database, artifacts=artifacts, device=device or settings.device)
