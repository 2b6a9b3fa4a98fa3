"""Files and folders for their owner alone, whatever the folder around them lets others do."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import IO, BinaryIO, Final

_OTHERS: Final = 0o077
_FOLDER, _FILE = 0o700, 0o600


def private_folder(folder: Path) -> Path:
    """Make a folder that nobody else may enter, and those above it that are missing; one of ours is closed.

    Raises:
        OSError: it cannot be made.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=_FOLDER, exist_ok=True)  # `parents=True` would make those above by the umask
    _close(folder, _FOLDER)
    return folder


def private_file(path: Path) -> Path:
    """Make an empty file that nobody else may read; one of ours that is there is closed. Raises OSError."""
    path.touch(mode=_FILE)
    _close(path, _FILE)
    return path


def open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file; one that this makes nobody else may read. `mode` as of `open`, in bytes. Raises OSError."""
    file: IO[bytes] = open(path, mode, opener=lambda name, flags: os.open(name, flags, _FILE))  # noqa: SIM115 - `Path.open` takes no opener
    return file


def part_beside(path: Path) -> Path:
    """Where to write what becomes `path` once it is whole: a name in its folder that nobody can guess.

    Whoever may write to that folder, a shared one for example, could plant a link under a name known before, and what
    is written would go where that leads.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def open_new(path: Path, mode: int = 0o666) -> BinaryIO:
    """Open a file that is not there yet, and follow no link to make it. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(path, flags, mode), "wb")


def _close(path: Path, mode: int) -> None:
    facts = path.stat()
    if facts.st_mode & _OTHERS and facts.st_uid == os.geteuid():
        path.chmod(mode)
