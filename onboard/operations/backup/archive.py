"""Backup archives: a folder, a URL of an object store, or one zip file. All store bytes by their digest."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Lock
from typing import Final, Protocol

from onboard.contract.upkeep import BackupManifest
from onboard.domain.private import open_new, part_beside
from onboard.errors import ConflictError, DamagedError, InputError, NotFoundError
from onboard.operations.backup.manifest import NAME, pack_manifest, unpack_manifest
from onboard.operations.backup.transfer import BlobStore
from onboard.storage.artifacts import ArtifactStore, digest_of, key_of
from onboard.storage.files import Files, errors_in_our_words

_SETTING: Final = "the command's argument"
_OTHER_FILES: Final = (".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z")
_ENCRYPTED: Final = 0x1  # flag of a zip member
# Raised by zipfile for truncated or invalid files, because it validates few fields before it uses them.
_UNREADABLE: Final = (zipfile.BadZipFile, EOFError, ValueError, NotImplementedError, struct.error)


class Archive(BlobStore, Protocol):
    """A backup, for reading and writing."""

    def manifest(self) -> BackupManifest | None:
        """Return the manifest; None if there is no backup. Raises DamagedError."""

    def finish(self, manifest: BackupManifest, named: set[str]) -> None:
        """Write the manifest, then delete all files that are not in `named`."""


class ArchiveFolder:
    """A backup in a folder or under an fsspec URL. Another backup into it copies only new data."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._files = Files(url, _SETTING)
        self._store = ArtifactStore(url, _SETTING)
        self.put, self.get, self.intact = self._store.put, self._store.get, self._store.intact

    def manifest(self) -> BackupManifest | None:
        """Return the manifest; None if there is no backup."""
        try:
            return unpack_manifest(self._files.read(NAME), self._url)
        except NotFoundError:
            return None

    def begin(self, database: str) -> None:
        """Prepare the folder for writing.

        Raises:
            ConflictError: it contains other files, or backups of another service.
        """
        self._files.make()
        existing = self.manifest()
        if existing is not None:
            _require_same_service(existing, database, self._url)
            self._files.close_to_others()
        elif self._files.entries():
            raise ConflictError("backup-folder-occupied", target=self._url)
        else:
            self._files.write(NAME, pack_manifest(BackupManifest.unfinished(database)))

    def finish(self, manifest: BackupManifest, named: set[str]) -> None:
        """Write the manifest, then delete earlier rows and artifacts that the service no longer has."""
        self._files.write(NAME, pack_manifest(manifest))
        for shard in sorted(self._store.shards()):
            self._store.delete(*(self._store.in_shard(shard).keys() - named))
            self._store.delete_unfinished(shard, self._store.unfinished(shard))


class ArchiveFile:
    """A backup in one zip file."""

    def __init__(self, file: zipfile.ZipFile, path: Path) -> None:
        self._file, self._path = file, path
        self._kept: set[str] = set()
        self._writing = Lock()  # only one thread can write to a zip file

    def put(self, data: bytes, kind: str) -> str:
        """Store bytes and return their digest."""
        digest = digest_of(data)
        with self._writing, self._errors_in_our_words(f"this {kind} ({len(data)} bytes) cannot be stored"):
            if digest not in self._kept:
                self._file.writestr(key_of(digest), data)
                self._kept.add(digest)
        return digest

    def intact(self, digest: str) -> bool:
        """Return whether the bytes were already written. Every backup writes a new zip file."""
        return digest in self._kept

    def get(self, digest: str) -> bytes:
        """Return the bytes of a digest, verified."""
        data = self._read(key_of(digest))
        if data is None:
            raise NotFoundError("artifact-not-in-backup", digest=digest, path=self._path)
        if digest_of(data) != digest:
            raise _no_zip(self._path, f"{digest} does not match its digest")
        return data

    def manifest(self) -> BackupManifest | None:
        """Return the manifest; None if there is none."""
        data = self._read(NAME)
        return None if data is None else unpack_manifest(data, str(self._path))

    def finish(self, manifest: BackupManifest, named: set[str]) -> None:  # noqa: ARG002 - it holds nothing else
        """Write the manifest."""
        with self._errors_in_our_words("the manifest cannot be stored"):
            self._file.writestr(NAME, pack_manifest(manifest))

    def _read(self, name: str) -> bytes | None:
        with self._errors_in_our_words(f"{name} cannot be read"):
            try:
                member = self._file.getinfo(name)
            except KeyError:
                return None
            if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & _ENCRYPTED:
                # A backup has no compressed members; they could expand to gigabytes.
                raise _no_zip(self._path, f"{name} is compressed or encrypted")
            try:
                return self._file.read(member)
            except _UNREADABLE as error:
                raise _no_zip(self._path, str(error)) from error

    def _errors_in_our_words(self, what: str) -> AbstractContextManager[None]:
        return errors_in_our_words(str(self._path), what, _SETTING)


@contextmanager
def writing(target: str, database: str) -> Iterator[Archive]:
    """Open a backup for writing: a zip file if the target ends in .zip, otherwise a folder.

    Args:
        database: URL of the database that is backed up, without the password.

    Raises:
        ConflictError: the target contains other files, or backups of another service.
        DamagedError: the existing manifest is damaged.
        InputError: a zip file in an object store, or another kind of file.
        StorageError, NotAllowedError: it cannot be written.
    """
    if target.endswith(_OTHER_FILES):
        raise InputError("backup-zip-is-folder", target=target)
    if not target.endswith(".zip"):
        folder = ArchiveFolder(target)
        folder.begin(database)
        yield folder
        return
    if "://" in target:
        raise InputError("backup-zip-not-local", target=target)
    path = Path(target)
    if path.exists():
        with reading(target) as existing:
            _require_same_service(manifest_of(existing, target), database, target)
    part = part_beside(path)
    with errors_in_our_words(target, "the backup cannot be stored", _SETTING):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open_new(part, 0o600) as stream:
                with zipfile.ZipFile(stream, "w") as file:
                    yield ArchiveFile(file, path)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextmanager
def reading(source: str) -> Iterator[Archive]:
    """Open a backup for reading.

    Raises:
        NotFoundError: there is no backup.
        DamagedError: the file is not a zip archive.
    """
    path = Path(source)
    if not path.is_file():
        yield ArchiveFolder(source)
        return
    with errors_in_our_words(source, "the backup cannot be read", _SETTING):
        try:
            file = zipfile.ZipFile(path)
        except _UNREADABLE as error:
            raise _no_zip(path, str(error)) from error
        with file:
            yield ArchiveFile(file, path)


def manifest_of(archive: Archive, place: str) -> BackupManifest:
    """Return the manifest of a finished backup.

    Raises:
        NotFoundError: there is no backup.
        DamagedError: the backup is incomplete, or its manifest is damaged.
    """
    manifest = archive.manifest()
    if manifest is None:
        raise NotFoundError("unknown-backup", place=place)
    if not manifest.finished:
        raise DamagedError("backup-broken-off", place=place)
    return manifest


def _require_same_service(present: BackupManifest, database: str, target: str) -> None:
    if present.database != database:
        raise ConflictError("backup-of-other-service", present=present.database, database=database, target=target)


def _no_zip(path: Path, reason: str) -> DamagedError:
    return DamagedError("backup-damaged", file=str(path), reason=reason)
