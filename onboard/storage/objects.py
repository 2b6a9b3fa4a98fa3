"""Find, read, download and upload users' objects under a URL (s3://, gs://) with fsspec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from onboard.errors import InputError, StorageError
from onboard.storage.files import errors_in_our_words, open_store

_MAGIC: Final = frozenset("*?[")
_CHANGES: Final = ("ETag", "etag", "md5Hash", "LastModified", "last_modified", "mtime", "updated", "created")


def is_url(place: str) -> bool:
    """Return whether a place is a URL rather than a local path."""
    return "://" in place


def has_magic(place: str) -> bool:
    """Return whether a place is a pattern with `*`, `?` or `[…]`."""
    return not _MAGIC.isdisjoint(place)


def split_pattern(place: str) -> tuple[str, str]:
    """Split a place before its first pattern: `a/b/*.csv` → `a/b`, `*.csv`. Without a pattern, the second part is
    empty.
    """
    parts = place.split("/")
    fixed = next((number for number, part in enumerate(parts) if has_magic(part)), len(parts))
    return "/".join(parts[:fixed]), "/".join(parts[fixed:])


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object in a store.

    Args:
        name: relative to the URL that was opened; for a single object, its name.
        changed: the store's ETag or time of change; differs after each write.
    """

    name: str
    size_bytes: int
    changed: str


class Objects:
    """Access the objects under one URL.

    Args:
        url: of an object or of a prefix, without a pattern.
        option: the option to correct when the URL is wrong, for the remedy.

    Raises:
        InputError: the URL's kind of store is unknown, its package is not installed, or it contains a password.
    """

    def __init__(self, url: str, option: str) -> None:
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise InputError("credentials-in-url", option=option)
        self.url, self._option = url.rstrip("/"), option
        self._fs, self._root = open_store(url, url, option)

    def find(self, pattern: str = "") -> list[StoredObject]:
        """Return all objects under the URL, or those that match a pattern, sorted by name."""
        with errors_in_our_words(self.url, "it cannot be listed", self._option):
            try:
                listed = (
                    self._fs.glob(f"{self._root}/{pattern}", detail=True)
                    if pattern
                    else self._fs.find(self._root, detail=True)
                )
            except FileNotFoundError:  # the bucket does not exist
                return []
        objects = [self._stored(path, facts) for path, facts in listed.items() if facts["type"] == "file"]
        return sorted((stored for stored in objects if not stored.name.endswith("/")), key=lambda stored: stored.name)

    def names(self) -> set[str]:
        """Return the names of all objects under the URL."""
        return {stored.name for stored in self.find()}

    def look(self, name: str) -> StoredObject | None:
        """Return the current state of an object; None if it no longer exists."""
        with errors_in_our_words(self.url, f"{name} cannot be looked up", self._option):
            path = self._path(name)  # which may query the store
            try:
                return self._stored(path, self._fs.info(path))
            except FileNotFoundError:
                return None

    def fetch(self, name: str, target: Path) -> None:
        """Download an object to a local file."""
        with errors_in_our_words(self.url, f"{name} cannot be fetched", self._option):
            self._fs.get_file(self._path(name), str(target))

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small object; None if it does not exist."""
        with errors_in_our_words(self.url, f"{name} cannot be read", self._option):
            try:
                content: bytes = self._fs.cat_file(self._path(name))
            except FileNotFoundError:
                return None
        return content

    def put(self, source: Path, name: str) -> None:
        """Upload a file atomically. Raises StorageError."""
        with errors_in_our_words(self.url, f"{name} cannot be written", self._option):
            try:
                self._fs.put_file(str(source), self._path(name))
            except FileNotFoundError as error:
                raise StorageError("bucket-not-writable", url=self.url, reason=error) from error

    def _path(self, name: str) -> str:
        return self._root if name == self._root.rpartition("/")[2] and self._is_single else f"{self._root}/{name}"

    @cached_property
    def _is_single(self) -> bool:
        """Whether the URL names an object rather than a prefix."""
        try:
            return bool(self._fs.info(self._root)["type"] == "file")
        except FileNotFoundError:
            return False

    def _stored(self, path: str, facts: Mapping[str, Any]) -> StoredObject:
        name = path.removeprefix(self._root).lstrip("/") or self._root.rpartition("/")[2]
        changed = next((str(facts[key]) for key in _CHANGES if facts.get(key) is not None), "")
        return StoredObject(name, int(facts.get("size") or 0), changed.strip('"'))
