"""Objects of others under a URL (s3://, gs://) by fsspec: found, looked at, fetched to this machine, put whole."""

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
    """Whether a place is a URL, not a path of this machine."""
    return "://" in place


def has_magic(place: str) -> bool:
    """Whether a place is a pattern: `*`, `?` or `[…]` stand for several files."""
    return not _MAGIC.isdisjoint(place)


def split_pattern(place: str) -> tuple[str, str]:
    """Where a pattern begins, and the rest, which is empty of no pattern: `a/b/*.csv` → `a/b`, `*.csv`."""
    parts = place.split("/")
    fixed = next((number for number, part in enumerate(parts) if has_magic(part)), len(parts))
    return "/".join(parts[:fixed]), "/".join(parts[fixed:])


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object.

    Args:
        name: relative to the URL that was opened; of a single object its own.
        changed: another text once it is written again: the store's ETag, or when it was written.
    """

    name: str
    size_bytes: int
    changed: str


class Objects:
    """What lies under one URL.

    Args:
        url: of an object or of a prefix, without a pattern.
        option: what to correct when the URL is wrong, for the remedy.

    Raises:
        InputError: the URL's kind of store is unknown, its package is not installed, or it has a password in it.
    """

    def __init__(self, url: str, option: str) -> None:
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise InputError("credentials-in-url", option=option)
        self.url, self._option = url.rstrip("/"), option
        self._fs, self._root = open_store(url, url, option)

    def find(self, pattern: str = "") -> list[StoredObject]:
        """All objects under the URL, or those that a pattern below it names, by name; none where there is nothing."""
        with errors_in_our_words(self.url, "it cannot be listed", self._option):
            try:
                listed = (
                    self._fs.glob(f"{self._root}/{pattern}", detail=True)
                    if pattern
                    else self._fs.find(self._root, detail=True)
                )
            except FileNotFoundError:  # no such bucket
                return []
        objects = [self._stored(path, facts) for path, facts in listed.items() if facts["type"] == "file"]
        return sorted((stored for stored in objects if not stored.name.endswith("/")), key=lambda stored: stored.name)

    def names(self) -> set[str]:
        """The names of all objects under the URL."""
        return {stored.name for stored in self.find()}

    def look(self, name: str) -> StoredObject | None:
        """An object as it is now; None when it is gone."""
        with errors_in_our_words(self.url, f"{name} cannot be looked up", self._option):
            path = self._path(name)  # which may ask the store, too
            try:
                return self._stored(path, self._fs.info(path))
            except FileNotFoundError:
                return None

    def fetch(self, name: str, target: Path) -> None:
        """Copy an object to a file of this machine."""
        with errors_in_our_words(self.url, f"{name} cannot be fetched", self._option):
            self._fs.get_file(self._path(name), str(target))

    def read(self, name: str) -> bytes | None:
        """The bytes of a small object; None when there is none."""
        with errors_in_our_words(self.url, f"{name} cannot be read", self._option):
            try:
                content: bytes = self._fs.cat_file(self._path(name))
            except FileNotFoundError:
                return None
        return content

    def put(self, source: Path, name: str) -> None:
        """Write an object from a file; object stores show a whole object or none. Raises StorageError."""
        with errors_in_our_words(self.url, f"{name} cannot be written", self._option):
            try:
                self._fs.put_file(str(source), self._path(name))
            except FileNotFoundError as error:
                raise StorageError("bucket-not-writable", url=self.url, reason=error) from error

    def _path(self, name: str) -> str:
        return self._root if name == self._root.rpartition("/")[2] and self._is_single else f"{self._root}/{name}"

    @cached_property
    def _is_single(self) -> bool:
        """Whether the URL is that of an object, not of a prefix."""
        try:
            return bool(self._fs.info(self._root)["type"] == "file")
        except FileNotFoundError:
            return False

    def _stored(self, path: str, facts: Mapping[str, Any]) -> StoredObject:
        name = path.removeprefix(self._root).lstrip("/") or self._root.rpartition("/")[2]
        changed = next((str(facts[key]) for key in _CHANGES if facts.get(key) is not None), "")
        return StoredObject(name, int(facts.get("size") or 0), changed.strip('"'))
