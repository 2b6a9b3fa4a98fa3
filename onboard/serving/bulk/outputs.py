"""Where a run writes: a folder of this machine or a prefix of an object store. A file is there whole or not at all."""

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

LOCK: Final = ".lock"  # while a run is planned


class Outputs(Protocol):
    """The place of the answers.

    Attributes:
        place: as it was asked for, the same on every machine.
    """

    place: str

    def names(self) -> set[str]:
        """What is there, but for what is being written just now."""

    def read(self, name: str) -> bytes | None:
        """A small file; None where there is none."""

    def has(self, name: str) -> bool:
        """Whether there is such a file."""

    def writing(self, name: str, attempt: int = 0) -> AbstractContextManager[Path]:
        """A file of this machine to write into, which is gone afterwards.

        Args:
            attempt: tells it from what another attempt, which may be at it still, writes.
        """

    def publish(self, part: Path, name: str) -> None:
        """What was written gets its name, and takes the place of what had it."""

    def planning(self) -> AbstractContextManager[object]:
        """One process of this machine at a time."""

    def own(self, name: str) -> AbstractContextManager[object]:
        """The right to write a file, as long as this process lives. Raises Timeout: another of this machine has it."""

    def disown(self, name: str) -> None:
        """It is written: nobody else has to have it."""

    def clear(self) -> None:
        """Delete what killed processes have left half written."""

    def in_our_words(self) -> AbstractContextManager[None]:
        """Failures to write are told in our words: NotAllowedError, StorageError."""


def outputs_at(place: str | Path) -> Outputs:
    """The folder or prefix that a path or a URL means. Raises InputError: a URL of an unknown kind."""
    return RemoteOutputs(str(place)) if is_url(str(place)) else LocalOutputs(str(place))


def write_whole(
    outputs: Outputs, name: str, lines: Iterator[str], attempt: int, publish: Callable[[Path], None]
) -> None:
    """Write a file beside its place, then let it be published.

    Args:
        attempt: as of `Outputs.writing`.
        publish: called with the written file; may raise to leave it.
    """
    with outputs.writing(name, attempt) as part:
        with part.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(lines)
            stream.flush()
            os.fsync(stream.fileno())
        publish(part)


class LocalOutputs:
    """A folder, which is made when something is written."""

    def __init__(self, place: str) -> None:
        self.place, self._folder = place, Path(place)

    def names(self) -> set[str]:
        """What lies in it."""
        try:
            listed = list(self._folder.iterdir())
        except FileNotFoundError:
            return set()
        return {path.name for path in listed if path.name != LOCK and not _is_part(path.name)}

    def read(self, name: str) -> bytes | None:
        """A file of it."""
        try:
            return (self._folder / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return (self._folder / name).is_file()

    @contextmanager
    def writing(self, name: str, attempt: int = 0) -> Iterator[Path]:
        """In the folder itself, so that publishing is renaming."""
        part = part_beside(self._folder / (f"{name}.{attempt}" if attempt else name))
        open_new(part, 0o600).close()  # answers are as private as the texts that they are about
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)

    def publish(self, part: Path, name: str) -> None:
        """Rename it; the name too survives a power cut."""
        part.replace(self._folder / name)
        sync_folder(self._folder)

    def planning(self) -> FileLock:
        """By a lock in the folder."""
        return FileLock(self._folder / LOCK)

    def own(self, name: str) -> FileLock:
        """By a lock in the folder."""
        return FileLock(self._folder / f".{name}.lock", timeout=0)

    def disown(self, name: str) -> None:
        """Its lock goes; who waits for it finds the file."""
        (self._folder / f".{name}.lock").unlink(missing_ok=True)

    def clear(self) -> None:
        """Parts that have no name."""
        for path in self._folder.glob(".*.part"):
            path.unlink(missing_ok=True)

    @contextmanager
    def in_our_words(self) -> Iterator[None]:
        """The folder is made, too."""
        with output_in_our_words(self.place, "free some space, then the same command goes on"):
            self._folder.mkdir(parents=True, exist_ok=True)
            yield


class RemoteOutputs:
    """A prefix. Processes that write there at once know nothing of one another, unless a job's rows part the work."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._objects = Objects(place, "--output")

    def names(self) -> set[str]:
        """What lies below it."""
        return self._objects.names()

    def read(self, name: str) -> bytes | None:
        """An object."""
        return self._objects.read(name)

    def has(self, name: str) -> bool:
        """Whether it is there."""
        return self._objects.look(name) is not None

    @contextmanager
    def writing(self, name: str, attempt: int = 0) -> Iterator[Path]:  # noqa: ARG002 - every folder is another
        """In a temporary folder."""
        with temporary_folder("onboard-shard-") as folder:
            yield folder / name

    def publish(self, part: Path, name: str) -> None:
        """Put it: the object is there whole or not at all."""
        self._objects.put(part, name)

    def planning(self) -> AbstractContextManager[object]:
        """Nothing to hold."""
        return contextlib.nullcontext()

    def own(self, name: str) -> AbstractContextManager[object]:  # noqa: ARG002
        """Nothing to hold."""
        return contextlib.nullcontext()

    def disown(self, name: str) -> None:
        """Nothing was held."""

    def clear(self) -> None:
        """Object stores show no halves."""

    def in_our_words(self) -> AbstractContextManager[None]:
        """Those of an object store are so already; those of this machine are of its temporary folder."""
        return errors_in_our_words(tempfile.gettempdir(), "answers cannot be written", "TMPDIR")


def _is_part(name: str) -> bool:
    return name.startswith(".") and name.endswith((".part", ".part.lock", ".jsonl.lock"))
