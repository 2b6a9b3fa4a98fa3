"""What a run reads: a file, a folder or a pattern, of this machine or of an object store; and what it was once.

Files of an object store are copied to this machine one at a time, while they are read.
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

_PASSED_OVER: Final = (".", "_")  # what names of files begin with that are no data: markers, temporary files
_COPIES: Final = "onboard-bulk-"  # what names of the folders begin with in which copies lie


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that is read.

    Args:
        name: relative to the folder that was asked for; of a single file its own.
        size_bytes: when the run was planned.
        changed: another text once the file is written again: nanoseconds by the file system, or an ETag.
        rows: all of them, the bad ones too.
        bad_rows: those that hold no text that can be answered.
    """

    name: str
    size_bytes: int
    changed: str
    rows: int = 0
    bad_rows: int = 0


class Inputs(Protocol):
    """The files of a run.

    Attributes:
        place: as it was asked for, the same on every machine.
        near: whether looking into a file costs nothing.
    """

    place: str
    near: bool

    def files(self) -> list[InputFile]:
        """All of them, by name, as they are now. Raises NotFoundError: nothing is there; InputError: no files are."""

    def look(self, name: str) -> InputFile:
        """A file as it is now. Raises ConflictError: it is gone."""

    def path(self, name: str) -> Path:
        """Where it can be read on this machine, until another is asked for."""

    def shown(self, name: str) -> str:
        """As errors and answers name it."""

    def holds(self, place: str) -> bool:
        """Whether that place lies in the folder that is read, or is the file."""

    def close(self) -> None:
        """Leave nothing behind."""


def inputs_of(place: str | Path) -> Inputs:
    """The files that a path, a pattern or a URL means. Raises InputError: a URL of an unknown kind."""
    return RemoteInputs(str(place)) if is_url(str(place)) else LocalInputs(str(place))


def require_unchanged(file: InputFile, inputs: Inputs, now: InputFile | None = None) -> None:
    """Raise ConflictError unless a file is what it was when the run was planned.

    Args:
        now: the file as it is, where that is known.
    """
    now = now or inputs.look(file.name)
    if (now.size_bytes, now.changed) != (file.size_bytes, file.changed):
        raise ConflictError("input-changed", file=file.name, inputs=inputs.shown(file.name))


def listing_digest(files: Sequence[InputFile]) -> str:
    """Of names, sizes and states: another one once any file is written, added or taken away."""
    facts = "\n".join(f"{file.name}\0{file.size_bytes}\0{file.changed}" for file in files)
    return f"sha256:{hashlib.sha256(facts.encode()).hexdigest()}"


class LocalInputs:
    """A file, a folder with those in it, or a pattern such as `logs/*.jsonl`."""

    near = True

    def __init__(self, place: str) -> None:
        self.place = place
        path = Path(place)
        folder, self._pattern = (place, "") if path.exists() or not has_magic(place) else split_pattern(place)
        self._root = Path(folder or (Path("/") if place.startswith("/") else "."))

    def files(self) -> list[InputFile]:
        """All of them, by name."""
        if not self._pattern and not self._root.exists():
            raise NotFoundError("input-path-missing", root=self._root)
        if not self._pattern and not self._root.is_dir():
            return [self.look(self._root.name)]
        paths = self._root.glob(self._pattern) if self._pattern else self._root.rglob("*")
        names = [path.relative_to(self._root).as_posix() for path in sorted(paths) if path.is_file()]
        return [self.look(name) for name in _data(names, self.place)]

    def look(self, name: str) -> InputFile:
        """A file as the file system has it."""
        path = self.path(name)
        try:
            facts = path.stat()
        except OSError as error:
            raise ConflictError("input-file-unreadable", file=name, path=path, reason=error.strerror) from error
        return InputFile(name, facts.st_size, str(facts.st_mtime_ns))

    def path(self, name: str) -> Path:
        """Where it lies."""
        return self._root if self._is_single else self._root / name

    def shown(self, name: str) -> str:
        """Its path."""
        return str(self.path(name))

    def holds(self, place: str) -> bool:
        """By what the paths mean."""
        if is_url(place):
            return False
        there, root = Path(place).resolve(), self._root.resolve()
        return there == root if self._is_single else there.is_relative_to(root)

    def close(self) -> None:
        """There is nothing to leave."""

    @property
    def _is_single(self) -> bool:
        return not self._pattern and not self._root.is_dir()


class RemoteInputs:
    """An object, a prefix with all below it, or a pattern such as `s3://bucket/logs/*.parquet`."""

    near = False

    def __init__(self, place: str) -> None:
        self.place = place
        folder, self._pattern = split_pattern(place)
        self._objects = Objects(folder, "--input")
        self._folder: Path | None = None
        self._lock: FileLock | None = None

    def files(self) -> list[InputFile]:
        """All of them, by name."""
        objects = {stored.name: stored for stored in self._objects.find(self._pattern)}
        if not objects:
            raise NotFoundError("input-url-missing", place=self.place)
        return [_file_of(objects[name]) for name in _data(list(objects), self.place)]

    def look(self, name: str) -> InputFile:
        """An object as the store has it."""
        stored = self._objects.look(name)
        if stored is None:
            raise ConflictError("input-file-gone", file=name, path=self.shown(name))
        return _file_of(stored)

    def path(self, name: str) -> Path:
        """Where its copy lies; that of another is gone."""
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
        """Its URL."""
        return self._objects.url if self._objects.url.endswith(f"/{name}") else f"{self._objects.url}/{name}"

    def holds(self, place: str) -> bool:
        """By the text of the URLs."""
        return f"{place.rstrip('/')}/".startswith(f"{self._objects.url}/")

    def close(self) -> None:
        """Delete the copy."""
        if self._folder is not None and self._lock is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            Path(self._lock.lock_file).unlink(missing_ok=True)
            self._lock.release()
            self._folder = None

    def _make_folder(self) -> None:
        """What processes that were killed have left goes first: nobody holds its lock."""
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
    """Those that are data, in the order of their names. Raises InputError: none is."""
    data = sorted(name for name in names if not any(part.startswith(_PASSED_OVER) for part in name.split("/")))
    if not data:
        raise InputError("input-without-files", place=place)
    return data
