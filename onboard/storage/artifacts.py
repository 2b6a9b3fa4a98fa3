"""The artifact store: bytes by their digest, in a folder or an object store (s3://, gs://).

Every key is derived from a digest in this module. Callers never supply a path.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from onboard.errors import DamagedError, InputError, NotFoundError
from onboard.storage.files import Files, ListedFile

_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_FOLDER: Final = "sha256"
_SHARD: Final = re.compile(r"[0-9a-f]{2}")


def digest_of(data: bytes) -> str:
    """Return the digest of bytes: "sha256:" and 64 hexadecimal characters."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def is_digest(text: object) -> bool:
    """Return whether text has the form of a digest."""
    return isinstance(text, str) and _DIGEST.fullmatch(text) is not None


class ArtifactStore:
    """Store bytes under their SHA-256.

    Args:
        url: a folder, or an fsspec URL such as s3://bucket/prefix.
        setting: the setting to correct when the URL is wrong, for the remedy.

    Raises:
        InputError: the URL's kind of store is unknown, or its package is not installed.
    """

    def __init__(self, url: str, setting: str = "ONBOARD_ARTIFACT_URL") -> None:
        self.url = url
        self._files = Files(url, setting)
        self.root = self._files.root

    def close_to_others(self) -> None:
        """Remove the access of other users to local folders, which an earlier version left open."""
        self._files.close_to_others()

    def put(self, data: bytes, kind: str) -> str:
        """Store bytes and return their digest. Existing bytes are kept; damaged ones are written again.

        Args:
            kind: the kind of artifact ("embedding", "snapshot", …), named in errors.

        Raises:
            StorageError: the disk is full, or the store cannot be reached.
            NotAllowedError: the store is read-only for this process.
        """
        digest = digest_of(data)
        if not self.intact(digest):
            self._files.write(key_of(digest), data, f"this {kind}")
        return digest

    def get(self, digest: str) -> bytes:
        """Return the bytes of a digest, verified.

        Raises:
            InputError: the text is not a digest.
            NotFoundError: no bytes are stored under the digest.
            DamagedError: the bytes no longer match their digest.
        """
        key = key_of(digest)
        try:
            data = self._files.read(key)
        except NotFoundError as error:
            raise self._missing(digest) from error
        self._require(digest, digest_of(data))
        return data

    def file(self, digest: str) -> Path | None:
        """Return the local path of the bytes, verified as in `get`; None in an object store."""
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
        """Return whether bytes are stored under this digest and match it."""
        try:
            self.get(digest)
        except (NotFoundError, DamagedError):
            return False
        return True

    def has(self, digest: str) -> bool:
        """Return whether bytes are stored under this digest (unverified)."""
        return self._files.has(key_of(digest))

    def size_bytes(self, digest: str) -> int | None:
        """Return the number of bytes stored under this digest; None if there are none."""
        return self._files.size_bytes(key_of(digest))

    def delete(self, *digests: str) -> None:
        """Delete the bytes of these digests, in batches where the store supports it. Missing digests are ignored."""
        self._files.delete([key_of(digest) for digest in digests])

    def shards(self) -> set[str]:
        """Return the first two characters of all stored digests; each has a folder."""
        return {entry.name for entry in self._files.entries(_FOLDER) if _SHARD.fullmatch(entry.name)}

    def in_shard(self, shard: str) -> dict[str, ListedFile]:
        """Return the files of a shard by digest (unverified)."""
        entries = self._files.entries(f"{_FOLDER}/{shard}")
        return {f"sha256:{entry.name}": entry for entry in entries if _NAME.fullmatch(entry.name)}

    def unfinished(self, shard: str) -> list[ListedFile]:
        """Return files of a shard that are being written, or that a killed process left behind."""
        return self._files.temporary(f"{_FOLDER}/{shard}")

    def delete_unfinished(self, shard: str, entries: Sequence[ListedFile]) -> None:
        """Delete files that `unfinished` returned."""
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
    """Return the path of a digest in a store or a backup: `sha256/ab/ab12…`. Raises InputError if the digest is
    invalid.
    """
    if not is_digest(digest):
        raise InputError("digest-invalid", digest=digest)
    name = digest.removeprefix("sha256:")
    return f"{_FOLDER}/{name[:2]}/{name}"
