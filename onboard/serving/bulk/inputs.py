"""The inputs of a run: a file, folder or pattern, local or in an object store; detects changes.

Files of an object store are copied to this machine one at a time.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from filelock import FileLock, Timeout

from onboard.errors import ConflictError, InputError, NotFoundError
from onboard.storage.objects import Objects, StoredObject, has_magic, is_url, split_pattern

_PASSED_OVER: Final = (".", "_")  # files with these prefixes are not data: markers, temporary files
_COPIES: Final = "onboard-bulk-"  # prefix of the folders with copies


@dataclass(frozen=True, slots=True)
class InputFile:
    """An input file.

    Args:
        name: relative to the input folder; for a single file its name.
        size_bytes: size when the run was planned.
        changed: changes when the file is rewritten: nanoseconds from the file system, or an ETag.
        rows: number of rows, including invalid ones.
        bad_rows: number of rows without a valid text.
    """

    name: str
    size_bytes: int
    changed: str
    rows: int = 0
    bad_rows: int = 0


class Inputs(Protocol):
    """The files of a run.

    Attributes:
        place: the path or URL, the same on every machine.
        near: whether opening a file is free.
    """

    place: str
    near: bool

    def files(self) -> list[InputFile]:
        """Return the current files by name.

        Raises NotFoundError: nothing exists there; InputError: the folder has no files.
        """

    def look(self, name: str) -> InputFile:
        """Return the current state of a file. Raises ConflictError: it was deleted."""

    def path(self, name: str) -> Path:
        """Return a local path of the file, valid until the next call."""

    def shown(self, name: str) -> str:
        """Return the name that errors and answers use."""

    def holds(self, place: str) -> bool:
        """Return whether a path or URL is inside the input folder, or is the input file."""

    def close(self) -> None:
        """Delete temporary copies."""


def inputs_of(place: str | Path) -> Inputs:
    """Return the inputs for a path, pattern or URL. Raises InputError: the URL scheme is not supported."""
    return RemoteInputs(str(place)) if is_url(str(place)) else LocalInputs(str(place))


def require_unchanged(file: InputFile, inputs: Inputs, now: InputFile | None = None) -> None:
    """Raise ConflictError if a file has changed since the run was planned.

    Args:
        now: current state of the file, if available.
    """
    now = now or inputs.look(file.name)
    if (now.size_bytes, now.changed) != (file.size_bytes, file.changed):
        raise ConflictError("input-changed", file=file.name, inputs=inputs.shown(file.name))


def listing_digest(files: Sequence[InputFile]) -> str:
    """Return a digest of names, sizes and states; it changes if any file is written, added or deleted."""
    facts = "\n".join(f"{file.name}\0{file.size_bytes}\0{file.changed}" for file in files)
    return f"sha256:{hashlib.sha256(facts.encode()).hexdigest()}"


class LocalInputs:
    """A file, a folder with its files, or a pattern such as `logs/*.jsonl`."""

    near = True

    def __init__(self, place: str) -> None:
        self.place = place
        path = Path(place)
        folder, self._pattern = (place, "") if path.exists() or not has_magic(place) else split_pattern(place)
        self._root = Path(folder or (Path("/") if place.startswith("/") else "."))

    def files(self) -> list[InputFile]:
        """Return the files, by name."""
        if not self._pattern and not self._root.exists():
            raise NotFoundError("input-path-missing", root=self._root)
        if not self._pattern and not self._root.is_dir():
            return [self.look(self._root.name)]
        paths = self._root.glob(self._pattern) if self._pattern else self._root.rglob("*")
        names = [path.relative_to(self._root).as_posix() for path in sorted(paths) if path.is_file()]
        return [self.look(name) for name in _data(names, self.place)]

    def look(self, name: str) -> InputFile:
        """Return the state of a file from the file system."""
        path = self.path(name)
        try:
            facts = path.stat()
        except OSError as error:
            raise ConflictError("input-file-unreadable", file=name, path=path, reason=error.strerror) from error
        return InputFile(name, facts.st_size, str(facts.st_mtime_ns))

    def path(self, name: str) -> Path:
        """Return the path of a file."""
        return self._root if self._is_single else self._root / name

    def shown(self, name: str) -> str:
        """Return the path of a file as text."""
        return str(self.path(name))

    def holds(self, place: str) -> bool:
        """Compare resolved paths."""
        if is_url(place):
            return False
        there, root = Path(place).resolve(), self._root.resolve()
        return there == root if self._is_single else there.is_relative_to(root)

    def close(self) -> None:
        """Do nothing: there are no copies."""

    @property
    def _is_single(self) -> bool:
        return not self._pattern and not self._root.is_dir()


class RemoteInputs:
    """An object, all objects below a prefix, or a pattern such as `s3://bucket/logs/*.parquet`."""

    near = False

    def __init__(self, place: str) -> None:
        self.place = place
        folder, self._pattern = split_pattern(place)
        self._objects = Objects(folder, "--input")
        self._folder: Path | None = None
        self._lock: FileLock | None = None

    def files(self) -> list[InputFile]:
        """Return the objects, by name."""
        objects = {stored.name: stored for stored in self._objects.find(self._pattern)}
        if not objects:
            raise NotFoundError("input-url-missing", place=self.place)
        return [_file_of(objects[name]) for name in _data(list(objects), self.place)]

    def look(self, name: str) -> InputFile:
        """Return the state of an object from the store."""
        stored = self._objects.look(name)
        if stored is None:
            raise ConflictError("input-file-gone", file=name, path=self.shown(name))
        return _file_of(stored)

    def path(self, name: str) -> Path:
        """Copy the object, delete the previous copy, and return the path."""
        if self._folder is None:
            self._make_folder()
        assert self._folder is not None
        copy = self._folder / hashlib.sha256(name.encode()).hexdigest()[:16] / Path(name).name
        if not copy.exists():
            for other in self._folder.iterdir():
                if other.is_dir():
                    shutil.rmtree(other)
            copy.parent.mkdir()
            part = copy.parent / "part"
            self._objects.fetch(name, part)
            part.rename(copy)
        return copy

    def shown(self, name: str) -> str:
        """Return the URL of an object."""
        return self._objects.url if self._objects.url.endswith(f"/{name}") else f"{self._objects.url}/{name}"

    def holds(self, place: str) -> bool:
        """Compare URLs as text."""
        return f"{place.rstrip('/')}/".startswith(f"{self._objects.url}/")

    def close(self) -> None:
        """Delete the copy."""
        if self._folder is not None and self._lock is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock.release()
            self._folder = None

    def _make_folder(self) -> None:
        """Create the folder for copies; first delete those of killed processes, which hold no lock."""
        place = Path(tempfile.gettempdir())
        for lock in place.glob(f"{_COPIES}*.lock"):
            with contextlib.suppress(Timeout, OSError), FileLock(lock, timeout=0):
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink()
        self._folder = place / f"{_COPIES}{secrets.token_hex(8)}"
        self._lock = FileLock(self._folder.with_suffix(".lock"))
        self._lock.acquire()
        self._folder.mkdir(mode=0o700)


def _file_of(stored: StoredObject) -> InputFile:
    return InputFile(stored.name, stored.size_bytes, stored.changed)


def _data(names: Sequence[str], place: str) -> list[str]:
    """Return the names of data files, sorted. Raises InputError: there are none."""
    data = sorted(name for name in names if not any(part.startswith(_PASSED_OVER) for part in name.split("/")))
    if not data:
        raise InputError("input-without-files", place=place)
    return data
