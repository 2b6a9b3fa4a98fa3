"""The artifact store: bytes by their digest, in a folder or an object store (s3://, gs://).

Keys are made here from the digest and nothing else; no caller ever supplies a path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.storage.files import Entry, Files

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_FOLDER: Final = "sha256"
_SHARD: Final = re.compile(r"[0-9a-f]{2}")


def digest_of(data: bytes) -> str:
    """The digest of bytes: "sha256:" and 64 hexadecimal characters."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def is_digest(text: object) -> bool:
    """Whether it has the form of a digest."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


class ArtifactStore:
    """Content-addressed bytes.

    Args:
        url: a folder, or an fsspec URL such as s3://bucket/prefix.
        setting: what to correct when the URL is wrong, for the remedy.

    Raises:
        InputError: the URL's kind of store is unknown, or its package is not installed.
    """

    def __init__(self, url: str, setting: str = "ONBOARD_ARTIFACT_URL") -> None:
        self.url = url
        self._files = Files(url, setting)
        self.root = self._files.root

    def close_to_others(self) -> None:
        """On this machine: let nobody else enter its folders, which an earlier version left open."""
        self._files.close_to_others()

    def put(self, data: bytes, kind: str) -> str:
        """Store bytes and return their digest. Bytes that are there already stay; damaged ones are written again.

        Args:
            kind: what they are ("embedding", "snapshot", …), named in errors.

        Raises:
            StorageError: the disk is full, or the store cannot be reached.
            NotAllowedError: the store is read-only for us.
        """
        digest = digest_of(data)
        if not self.intact(digest):
            self._files.write(key_of(digest), data, f"this {kind}")
        return digest

    def get(self, digest: str) -> bytes:
        """The bytes of a digest, verified.

        Raises:
            InputError: not a digest.
            NotFoundError: no such bytes.
            DamagedError: they do not match their digest any more.
        """
        key = key_of(digest)
        try:
            data = self._files.read(key)
        except NotFoundError as error:
            raise self._missing(digest) from error
        self._require(digest, digest_of(data))
        return data

    def file(self, digest: str) -> Path | None:
        """Where the bytes lie on this machine, verified as `get` does; None in an object store."""
        key = key_of(digest)
        path = self._files.local_path(key)
        if path is None:
            return None
        try:
            actual = self._files.sha256(key)
        except NotFoundError as error:
            raise self._missing(digest) from error
        self._require(digest, f"sha256:{actual}")
        return path

    def intact(self, digest: str) -> bool:
        """Whether bytes of this digest are there and match it."""
        try:
            self.get(digest)
        except (NotFoundError, DamagedError):
            return False
        return True

    def has(self, digest: str) -> bool:
        """Whether bytes of this digest are there (unverified)."""
        return self._files.has(key_of(digest))

    def size_bytes(self, digest: str) -> int | None:
        """How many bytes are there under this digest; None when there are none."""
        return self._files.size_bytes(key_of(digest))

    def delete(self, *digests: str) -> None:
        """Delete the bytes of these digests, in batches where the store can; what is not there is passed over."""
        self._files.delete([key_of(digest) for digest in digests])

    def shards(self) -> set[str]:
        """The first two characters of what is stored: a folder each."""
        return {entry.name for entry in self._files.entries(_FOLDER) if _SHARD.fullmatch(entry.name)}

    def in_shard(self, shard: str) -> dict[str, Entry]:
        """What is stored under digests that begin like this, by digest (unverified)."""
        entries = self._files.entries(f"{_FOLDER}/{shard}")
        return {f"sha256:{entry.name}": entry for entry in entries if _NAME.fullmatch(entry.name)}

    def unfinished(self, shard: str) -> list[Entry]:
        """Files of a shard that are being written, or whose writer was killed."""
        return self._files.temporary(f"{_FOLDER}/{shard}")

    def delete_unfinished(self, shard: str, entries: Sequence[Entry]) -> None:
        """Delete what `unfinished` found."""
        self._files.delete([f"{_FOLDER}/{shard}/{entry.name}" for entry in entries])

    def _missing(self, digest: str) -> NotFoundError:
        error = NotFoundError("artifact-not-in-store", digest=digest, url=self.url)
        return error.hide(NotFoundError("artifact-gone", digest=digest))

    def _require(self, digest: str, actual: str) -> None:
        if actual != digest:
            remedy = "Restore the artifact folder from a backup, or retry the job that made it: onboard jobs retry JOB"
            damaged = "is damaged: its bytes do not match its digest."
            error = DamagedError(
                "artifact-damaged-in-store", digest=digest, url=self.url, damaged=damaged, remedy=remedy
            )
            raise error.hide(DamagedError("artifact-damaged", digest=digest, damaged=damaged, remedy=remedy))


def key_of(digest: str) -> str:
    """Where the bytes of a digest lie: `sha256/ab/ab12…`, in a store and in a backup. Raises InputError."""
    if not is_digest(digest):
        raise InputError("digest-invalid", digest=digest)
    name = digest.removeprefix("sha256:")
    return f"{_FOLDER}/{name[:2]}/{name}"
