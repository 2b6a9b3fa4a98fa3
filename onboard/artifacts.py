"""The artifact store: bytes by their digest, in a folder or an object store (s3://, gs://) by fsspec.

Keys are made here from the digest and nothing else; no caller ever supplies a path.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from onboard.errors import DamagedError, InputError, NotAllowedError, NotFoundError, OnboardError, StorageError

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_FORBIDDEN: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


def digest_of(data: bytes) -> str:
    """The digest of bytes: "sha256:" and 64 hexadecimal characters."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class ArtifactStore:
    """Content-addressed bytes.

    Args:
        url: a folder, or an fsspec URL such as s3://bucket/prefix.

    Raises:
        InputError: the URL's kind of store is unknown, or its package is not installed.
    """

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem

        self.url = url
        try:
            self._fs, root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InputError(
                f"The artifact store {url!r} cannot be opened: {error}.",
                "For s3:// run: pip install 'onboard[s3]'; or correct ONBOARD_ARTIFACT_URL.",
            ) from error
        self._root = str(root).rstrip("/")
        self._local = isinstance(self._fs, LocalFileSystem)

    def put(self, data: bytes, kind: str) -> str:
        """Store bytes and return their digest. Bytes that are there already stay; damaged ones are written again.

        Args:
            kind: what they are ("embedding", "snapshot", …), named in errors.

        Raises:
            StorageError: the disk is full, or the store cannot be reached.
            NotAllowedError: the store is read-only for us.
        """
        digest = digest_of(data)
        with self._errors_in_our_words(f"this {kind} ({len(data)} bytes) cannot be stored"):
            if self._intact(digest):
                return digest
            if self._local:
                _write_atomically(Path(self._key(digest)), data)
            else:
                self._fs.pipe_file(self._key(digest), data)  # object stores show a whole object or none
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of a digest, verified.

        Raises:
            InputError: not a digest.
            NotFoundError: no such bytes.
            DamagedError: they do not match their digest any more.
        """
        with self._errors_in_our_words(f"{digest} cannot be read"):
            try:
                data: bytes = self._fs.cat_file(self._key(digest))
            except FileNotFoundError as error:
                raise NotFoundError(f"The artifact {digest} is not in {self.url}.", digest=digest) from error
        if digest_of(data) != digest:
            raise DamagedError(
                f"The artifact {digest} in {self.url} is damaged: its bytes do not match its digest.",
                "Restore the artifact folder from a backup, or retry the job that made it: onboard jobs retry JOB",
                digest=digest,
            )
        return data

    def has(self, digest: str) -> bool:
        """Whether bytes of this digest are there (unverified)."""
        with self._errors_in_our_words(f"{digest} cannot be looked up"):
            return bool(self._fs.isfile(self._key(digest)))

    def delete(self, digest: str) -> None:
        """Delete the bytes; nothing happens when there are none."""
        with self._errors_in_our_words(f"{digest} cannot be deleted"), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._key(digest))

    def _intact(self, digest: str) -> bool:
        try:
            return digest_of(self._fs.cat_file(self._key(digest))) == digest
        except FileNotFoundError:
            return False

    def _key(self, digest: str) -> str:
        if not _DIGEST.fullmatch(digest):
            raise InputError(f"{digest!r} is not the digest of an artifact.", "A digest is sha256: and 64 characters.")
        name = digest.removeprefix("sha256:")
        return f"{self._root}/sha256/{name[:2]}/{name}"

    @contextmanager
    def _errors_in_our_words(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._translated(error, what) from error

    def _translated(self, error: OSError, what: str) -> OnboardError:
        reason = error.strerror or str(error)
        facts: dict[str, Any] = {"store": self.url, "errno": error.errno}
        if isinstance(error, PermissionError) or error.errno in _FORBIDDEN:
            remedy = "Make it writable, or point ONBOARD_ARTIFACT_URL (or ONBOARD_HOME) elsewhere."
            return NotAllowedError(f"In {self.url} {what}: {reason}.", remedy, **facts)
        full = error.errno in _FULL
        remedy = "Free some space, then retry." if full else "See that the store can be reached, then retry."
        return StorageError(f"In {self.url} {what}: {reason}.", remedy, **facts)


def _write_atomically(target: Path, data: bytes) -> None:
    """Whole or not at all: write beside the target, force to disk, rename. The temporary never stays behind."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.parent / f".{target.name}.{uuid.uuid4().hex}"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the name too survives a power cut
    finally:
        os.close(folder)
