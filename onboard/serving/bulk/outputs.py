"""The output of a run: a local folder or a prefix in an object store. Files are written atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, Protocol

from filelock import FileLock

from onboard.contract.version_files import output_in_our_words
from onboard.domain.private import open_new, part_beside
from onboard.domain.temporary import temporary_folder
from onboard.storage.files import errors_in_our_words, sync_folder
from onboard.storage.objects import Objects, is_url

LOCK: Final = ".lock"  # held while a run is planned


class Outputs(Protocol):
    """Where answers are written.

    Attributes:
        place: the path or URL, the same on every machine.
    """

    place: str

    def names(self) -> set[str]:
        """Return the names of all files except those being written."""

    def read(self, name: str) -> bytes | None:
        """Return the content of a small file; None if it does not exist."""

    def has(self, name: str) -> bool:
        """Return whether a file exists."""

    def writing(self, name: str, attempt: int = 0) -> AbstractContextManager[Path]:
        """Open a temporary local file to write into; it is deleted afterwards.

        Args:
            attempt: separates the file from that of another attempt, which may still be writing.
        """

    def publish(self, part: Path, name: str) -> None:
        """Give the written file its name; replaces an existing file."""

    def planning(self) -> AbstractContextManager[object]:
        """Let one process of this machine plan at a time."""

    def own(self, name: str) -> AbstractContextManager[object]:
        """Lock a file for this process. Raises Timeout: another process of this machine holds it."""

    def disown(self, name: str) -> None:
        """Release the lock of a file that was written."""

    def clear(self) -> None:
        """Delete unfinished files of killed processes."""

    def in_our_words(self) -> AbstractContextManager[None]:
        """Convert write failures to NotAllowedError and StorageError."""


def outputs_at(place: str | Path) -> Outputs:
    """Return the outputs at a path or URL. Raises InputError: the URL scheme is not supported."""
    return RemoteOutputs(str(place)) if is_url(str(place)) else LocalOutputs(str(place))


def write_whole(
    outputs: Outputs, name: str, lines: Iterator[str], attempt: int, publish: Callable[[Path], None]
) -> None:
    """Write a file under a temporary name, then publish it.

    Args:
        attempt: see `Outputs.writing`.
        publish: called with the written file; may raise to discard it.
    """
    with outputs.writing(name, attempt) as part:
        with part.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(lines)
            stream.flush()
            os.fsync(stream.fileno())
        publish(part)


class LocalOutputs:
    """A folder, created with the first file."""

    def __init__(self, place: str) -> None:
        self.place, self._folder = place, Path(place)

    def names(self) -> set[str]:
        """List the folder."""
        try:
            listed = list(self._folder.iterdir())
        except FileNotFoundError:
            return set()
        return {path.name for path in listed if path.name != LOCK and not _is_part(path.name)}

    def read(self, name: str) -> bytes | None:
        """Read a file of the folder."""
        try:
            return (self._folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def has(self, name: str) -> bool:
        """Check for a file in the folder."""
        return (self._folder / name).is_file()

    @contextmanager
    def writing(self, name: str, attempt: int = 0) -> Iterator[Path]:
        """Write in the same folder, so that publishing is a rename."""
        part = part_beside(self._folder / (f"{name}.{attempt}" if attempt else name))
        open_new(part, 0o600).close()  # answers are as private as their texts
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)

    def publish(self, part: Path, name: str) -> None:
        """Rename the file; syncs the folder, so that the name survives a power failure."""
        part.replace(self._folder / name)
        sync_folder(self._folder)

    def planning(self) -> FileLock:
        """Lock the folder."""
        return FileLock(self._folder / LOCK)

    def own(self, name: str) -> FileLock:
        """Lock a file of the folder."""
        return FileLock(self._folder / f".{name}.lock", timeout=0)

    def disown(self, name: str) -> None:
        """Delete the lock; a process that waits for it then finds the file."""
        (self._folder / f".{name}.lock").unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete temporary files."""
        for path in self._folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    @contextmanager
    def in_our_words(self) -> Iterator[None]:
        """Convert write failures; also create the folder."""
        with output_in_our_words(self.place, "free some space, then repeat the command to continue"):
            self._folder.mkdir(parents=True, exist_ok=True)
            yield


class RemoteOutputs:
    """A prefix. Concurrent processes cannot see each other, unless they share the work through a job."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._objects = Objects(place, "--output")

    def names(self) -> set[str]:
        """List the objects below the prefix."""
        return self._objects.names()

    def read(self, name: str) -> bytes | None:
        """Read an object."""
        return self._objects.read(name)

    def has(self, name: str) -> bool:
        """Check for an object."""
        return self._objects.look(name) is not None

    @contextmanager
    def writing(self, name: str, attempt: int = 0) -> Iterator[Path]:  # noqa: ARG002 - every folder is another
        """Write into a temporary folder."""
        with temporary_folder("onboard-shard-") as folder:
            yield folder / name

    def publish(self, part: Path, name: str) -> None:
        """Upload the file; object stores do so atomically."""
        self._objects.put(part, name)

    def planning(self) -> AbstractContextManager[object]:
        """Do nothing: there are no locks."""
        return contextlib.nullcontext()

    def own(self, name: str) -> AbstractContextManager[object]:  # noqa: ARG002
        """Do nothing: there are no locks."""
        return contextlib.nullcontext()

    def disown(self, name: str) -> None:
        """Do nothing: there are no locks."""

    def clear(self) -> None:
        """Do nothing: object stores have no unfinished files."""

    def in_our_words(self) -> AbstractContextManager[None]:
        """Do nothing: errors of the object store are converted already."""
        return errors_in_our_words(tempfile.gettempdir(), "answers cannot be written", "TMPDIR")


def _is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith((".part", ".part.lock", ".jsonl.lock"))
