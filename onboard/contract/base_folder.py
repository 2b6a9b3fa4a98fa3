"""The folder of a base: its digest, and writing it completely or not at all."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from onboard.domain.private import part_beside
from onboard.errors import BaseDamagedError, BaseForbiddenError, ConflictError, DamagedError

LESSONS: Final = "lessons.safetensors"
RESTORE = "make the base again, or restore it"


def place_base(target: Path, digest: str, fill: Callable[[Path], object]) -> Path:
    """Return the folder with the base of this digest and no other files. An existing folder with it is left unchanged.

    Args:
        fill: makes the folder that is passed to it, and writes the base's files to it.

    Raises:
        ConflictError: the folder has other files.
        DamagedError: the written files are not the base.
        OSError: it cannot be written.
    """
    if not holds_base(target, digest):
        with new_base(target, digest) as part:
            fill(part)
    return target


def holds_base(target: Path, digest: str) -> bool:
    """Whether the folder exists and has the base of this digest. Raises ConflictError: it has other files."""
    if not target.exists():
        return False
    if folder_digest(target) != digest:
        raise ConflictError("base-folder-occupied", target=target, digest=digest)
    return True


@contextmanager
def new_base(target: Path, digest: str) -> Iterator[Path]:
    """Yield a folder that becomes `target` if it has the base of this digest at the end. Raises DamagedError."""
    with whole_folder(target) as part:
        yield part
        if folder_digest(part) != digest:
            raise DamagedError("base-received-differs", digest=digest)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Yield the path for a new folder that becomes `target` if the block succeeds, and is deleted otherwise."""
    part = part_beside(target)
    try:
        yield part
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def readable_base(folder: Path) -> Iterator[None]:
    """Raise BaseForbiddenError or BaseDamagedError if a file of the folder may not be read, or cannot be read."""
    try:
        yield
    except PermissionError as error:
        raise BaseForbiddenError("base-forbidden", folder=str(folder), forbidden=error.filename) from error
    except OSError as error:
        raise BaseDamagedError("base-unreadable", folder=folder, reason=error.strerror) from error


def folder_digest(folder: Path) -> str:
    """`sha256:…` over the sorted relative names and the bytes of every file of a folder, without the lessons of a base.

    Raises:
        BaseForbiddenError, BaseDamagedError: a file may not be read, or cannot be read.
    """
    with readable_base(folder):
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != folder / LESSONS]
        return digest_of_files((path.relative_to(folder).as_posix(), file_digest(path)) for path in files)


def file_digest(path: Path) -> str:
    """`sha256:…` of a file's bytes."""
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()


def digest_of_files(digests: Iterable[tuple[str, str]]) -> str:
    """`sha256:…` over names and digests of files, in the order of their paths."""
    total = hashlib.sha256()
    for name, digest in digests:
        total.update(f"{name}\0{digest.removeprefix('sha256:')}\n".encode())
    return "sha256:" + total.hexdigest()
