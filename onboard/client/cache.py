"""A local cache of embeddings: stored by digest, verified on every read, bounded, shared by processes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from onboard.client.answers import digest_of_file
from onboard.domain.untrusted_json import parse_json

MOST_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Note:
    """The last response of a URL: its ETag, the digest of the bytes, and the time (epoch seconds)."""

    etag: str
    digest: str
    at: float


class EmbeddingCache:
    """A cache of files by digest, and of the last response of each URL.

    Files are written atomically and verified by their digest, so processes need no lock: a race costs at most one
    request. A cache that cannot be written (full disk, read-only folder) is ignored.

    Args:
        folder: created if missing, readable by its owner only.
        url: of the service; services do not share responses.
        most_bytes: limit above which the least recently used files are deleted.
    """

    def __init__(self, folder: str | Path, url: str, most_bytes: int = MOST_BYTES) -> None:
        self._contents = Path(folder) / "contents"
        self._notes = Path(folder) / "notes" / hashlib.sha256(url.encode()).hexdigest()[:16]
        self._most_bytes = most_bytes

    def note(self, address: str) -> Note | None:
        """Return the last response of the URL, or None."""
        try:
            document = parse_json(self._note_file(address).read_bytes())
            return Note(str(document["etag"]), str(document["digest"]), float(document["at"]))
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return None

    def content(self, digest: str) -> bytes | None:
        """Return the bytes with this digest, or None. Damaged ones are deleted."""
        path = self._content_file(digest)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        if digest_of_file(content) != digest:
            _forget(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # mark as recently used
        return content

    def keep(self, address: str, etag: str, content: bytes) -> None:
        """Store a response. Call `shrink` after the last one."""
        note = Note(etag, digest_of_file(content), time.time())
        with contextlib.suppress(OSError):
            _write(self._content_file(note.digest), content)
            self._remember(address, note)

    def confirm(self, address: str, note: Note) -> None:
        """Record that the URL's content has not changed."""
        with contextlib.suppress(OSError):
            self._remember(address, replace(note, at=time.time()))

    def forget(self, address: str) -> None:
        """Forget the URL's response, so that it is not returned when the service is unavailable."""
        _forget(self._note_file(address))

    def shrink(self) -> None:
        """Delete the least recently used files until the cache fits its limit."""
        with contextlib.suppress(OSError):  # another process may do the same
            self._shrink()

    def _remember(self, address: str, note: Note) -> None:
        _write(self._note_file(address), json.dumps(asdict(note)).encode())

    def _shrink(self) -> None:
        files = [(entry.stat(), Path(entry.path)) for folder in self._folders() for entry in os.scandir(folder)]
        excess = sum(stat.st_size for stat, _ in files) - self._most_bytes
        for stat, path in sorted(files, key=lambda file: file[0].st_mtime_ns):
            if excess <= 0:
                return
            _forget(path)
            excess -= stat.st_size

    def _folders(self) -> list[Path]:
        return [folder for folder in (self._contents, *self._notes.parent.iterdir()) if folder.is_dir()]

    def _content_file(self, digest: str) -> Path:
        return self._contents / hashlib.sha256(digest.encode()).hexdigest()  # never a name from a service

    def _note_file(self, address: str) -> Path:
        return self._notes / hashlib.sha256(address.encode()).hexdigest()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = path.with_name(f".{uuid.uuid4().hex}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        _forget(part)


def _forget(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
