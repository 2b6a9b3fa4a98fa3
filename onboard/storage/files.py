"""Read and write files in a folder or an object store (s3://, gs://) with fsspec. Writes are atomic."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from onboard.domain.private import open_private, private_folder
from onboard.errors import InputError, NotAllowedError, NotFoundError, OnboardError, StorageError

_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FREE: Final = "Free some space, then retry."
_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{32}")
_MOMENTS: Final = ("mtime", "LastModified", "last_modified", "updated", "created")  # differs between stores
# their errors do not derive from OSError
_LIBRARIES: Final = ("aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """One file or folder of a listing. A folder has size 0 and time 0.

    Args:
        name: the last part of its path.
        modified_at: time of the last change in epoch seconds, by the store's clock.
    """

    name: str
    size_bytes: int
    modified_at: float


class Files:
    """Access the files under one URL. Names are relative to it and never come from a client.

    Args:
        url: a folder, or an fsspec URL such as s3://bucket/prefix.
        setting: the setting to correct when the URL is wrong, for the remedy.

    Attributes:
        root: the folder, or bucket and prefix.
        local: whether it is a local folder.

    Raises:
        InputError: the URL's kind of store is unknown, or its package is not installed.
    """

    def __init__(self, url: str, setting: str = "ONBOARD_ARTIFACT_URL") -> None:
        from fsspec.implementations.local import LocalFileSystem

        self.url = url
        self._setting = setting
        self._fs, self.root = open_store(url, f"The store {url!r}", setting)
        self.local = isinstance(self._fs, LocalFileSystem)

    def make(self) -> None:
        """Create a local folder, readable by its owner only. Object stores need none."""
        if self.local:
            with self._errors_in_our_words("it cannot be created"):
                if not Path(self.root).exists():
                    private_folder(Path(self.root))

    def close_to_others(self) -> None:
        """Remove the access of other users to the local subfolders, which an earlier version left open."""
        if self.local:
            with self._errors_in_our_words("its permissions cannot be restricted"):
                for folder in Path(self.root).glob("*/"):
                    private_folder(folder)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file. Raises NotFoundError if it does not exist."""
        with self._errors_in_our_words(f"{name} cannot be read"):
            try:
                data: bytes = self._fs.cat_file(self._path(name))
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
                if _lacks_bucket(error):
                    raise
                raise self._missing(name) from error
        return data

    def local_path(self, name: str) -> Path | None:
        """Return the path of a local file, which may not exist; None in an object store."""
        return Path(self._path(name)) if self.local else None

    def sha256(self, name: str) -> str:
        """Return the SHA-256 of a local file, 64 hexadecimal characters, without loading it into memory.

        Raises:
            NotFoundError: the file does not exist.
        """
        with self._errors_in_our_words(f"{name} cannot be read"):
            try:
                with Path(self._path(name)).open("rb") as stream:
                    return hashlib.file_digest(stream, "sha256").hexdigest()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
                raise self._missing(name) from error

    def write(self, name: str, data: bytes, what: str = "") -> None:
        """Write a file atomically. Locally, only the owner can read it and enter its folders.

        Args:
            what: description for errors; defaults to the name.

        Raises:
            StorageError: the disk is full, or the store cannot be reached.
            NotAllowedError: the store is read-only for this process.
        """
        with self._errors_in_our_words(f"{what or name} ({len(data)} bytes) cannot be stored"):
            if self.local:
                _write_atomically(Path(self.root), name, data)
            else:
                self._fs.pipe_file(self._path(name), data)  # object stores write atomically

    def has(self, name: str) -> bool:
        """Return whether the file exists."""
        with self._errors_in_our_words(f"{name} cannot be looked up"):
            try:
                return bool(self._fs.info(self._path(name))["type"] == "file")  # isfile() returns False for any failure
            except (FileNotFoundError, NotADirectoryError):
                return False

    def size_bytes(self, name: str) -> int | None:
        """Return the size of a file; None if it does not exist."""
        with self._errors_in_our_words(f"{name} cannot be looked up"):
            try:
                return int(self._fs.info(self._path(name))["size"])
            except (FileNotFoundError, NotADirectoryError):
                return None

    def delete(self, names: Sequence[str]) -> None:
        """Delete files, in batches where the store supports it. Missing files are ignored."""
        paths = [self._path(name) for name in names]
        with self._errors_in_our_words(f"{len(paths)} files cannot be deleted"):
            # Object stores report no errors of a batch, so delete the first file alone to detect missing permissions.
            alone = 1 if self._fs.async_impl else len(paths)
            for path in paths[:alone]:
                with contextlib.suppress(FileNotFoundError):
                    self._fs.rm_file(path)
            if paths[alone:]:
                with contextlib.suppress(FileNotFoundError):
                    self._fs.rm(paths[alone:])

    def entries(self, folder: str = "") -> list[ListedFile]:
        """List a folder, not recursively and without a cache. Returns nothing for a missing folder."""
        with self._errors_in_our_words(f"{folder or 'it'} cannot be listed"):
            try:
                entries = self._fs.ls(self._path(folder), detail=True)
            except FileNotFoundError as error:
                if _lacks_bucket(error):
                    raise
                return []
        return [_entry(facts) for facts in entries if str(facts["name"]).rstrip("/") != self._path(folder).lstrip("/")]

    def temporary(self, folder: str = "") -> list[ListedFile]:
        """Return the temporary files in a folder that are being written, or that a killed process left behind."""
        return [entry for entry in self.entries(folder) if _TEMPORARY.fullmatch(entry.name)] if self.local else []

    def _missing(self, name: str) -> OnboardError:
        outside = NotFoundError("store-file-missing", name=name)
        return NotFoundError("store-file-missing-at", name=name, url=self.url).hide(outside)

    def _path(self, name: str) -> str:
        return f"{self.root}/{name}" if name else self.root

    def _errors_in_our_words(self, what: str) -> AbstractContextManager[None]:
        return errors_in_our_words(self.url, what, self._setting)


def open_store(url: str, what: str, setting: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the folder (or bucket and prefix) within it.

    Args:
        setting: the setting to correct when the URL is wrong, for the remedy.

    Raises:
        InputError: the URL's kind of store is unknown, or its package is not installed.
    """
    from fsspec.core import url_to_fs
    from fsspec.implementations.local import LocalFileSystem

    if "://" not in url:  # a folder: fsspec would read a :: in its name as a chain of stores
        folder = LocalFileSystem(use_listings_cache=False)
        return folder, str(folder._strip_protocol(url)).rstrip("/")
    try:
        # Without a listings cache, because other processes write, too.
        file_system, root = url_to_fs(url, use_listings_cache=False)
    except (ImportError, ValueError) as error:
        raise InputError("store-url-unusable", purpose=what, reason=error, setting=setting) from error
    return file_system, str(root).rstrip("/")


@contextmanager
def errors_in_our_words(place: str, what: str, setting: str) -> Iterator[None]:
    """Convert failures of a file system or an object store to StorageError or NotAllowedError.

    Args:
        place: folder, file or URL, for the message.
        what: the failed operation, such as "it cannot be listed".
        setting: the setting to correct when the place is wrong, for the remedy.
    """
    try:
        yield
    except OSError as error:
        raise _hidden(_translated(error, place, what, setting), error.errno) from error
    except OnboardError:
        raise
    except Exception as error:
        # botocore raises a plain ValueError for a wrong AWS_ENDPOINT_URL
        no_endpoint = str(error).startswith("Invalid endpoint")
        if type(error).__module__.partition(".")[0] not in _LIBRARIES and not no_endpoint:
            raise
        raise _hidden(_away(place, what, str(error), setting)) from error


def _hidden(error: OnboardError, number: int | None = None) -> OnboardError:
    """Hide the store's location from HTTP clients and job errors, and keep the reason.

    Args:
        number: errno. Only its standard description is shown, because a library's message may name hosts.
    """
    why = f": {os.strerror(number)}" if number else ""
    remedy = _FREE if number in _FULL else "Try again in a moment. The log of the service has details."
    return error.hide(StorageError("store-unusable", reason=why, remedy=remedy))


def _translated(error: OSError, place: str, what: str, setting: str) -> OnboardError:
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError) or error.errno in _FORBIDDEN:
        mend = "Check that the credentials are correct and allow this" if "://" in place else "Make it writable"
        return NotAllowedError(
            "store-forbidden", store=place, errno=error.errno, failed=what, reason=reason, mend=mend, setting=setting
        )
    if error.errno in _FULL:
        return StorageError("store-full", store=place, errno=error.errno, failed=what, reason=reason)
    return _away(place, what, reason, setting, errno=error.errno)


def _away(place: str, what: str, reason: str, setting: str, **facts: Any) -> StorageError:
    return StorageError("store-failed", store=place, failed=what, reason=reason.rstrip("."), setting=setting, **facts)


def _lacks_bucket(error: OSError) -> bool:
    """Return whether the whole bucket is missing, which object stores report like a missing file."""
    return "bucket does not exist" in str(error)


def _entry(facts: dict[str, Any]) -> ListedFile:
    moment = next((facts[key] for key in _MOMENTS if facts.get(key) is not None), 0.0)
    return ListedFile(
        name=str(facts["name"]).rstrip("/").rpartition("/")[2],
        size_bytes=int(facts.get("size") or 0),
        modified_at=moment.timestamp() if isinstance(moment, datetime) else float(moment),
    )


def _write_atomically(root: Path, name: str, data: bytes) -> None:
    """Write a temporary file next to the target, sync and rename it. Only kill -9 leaves the temporary file behind."""
    target = root / name
    if not root.exists():
        private_folder(root)
    # not the root itself, which may belong to somebody else
    for below in reversed(target.relative_to(root).parents[:-1]):
        private_folder(root / below)
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex}"
    try:
        with open_private(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Sync a folder's entries, so that a new name survives a power cut. Raises OSError."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
