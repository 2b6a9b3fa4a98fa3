"""Private files and folders, independent of the permissions of the folder around them."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import IO, BinaryIO, Final

_OTHERS: Final = 0o077
_FOLDER, _FILE = 0o700, 0o600


def private_folder(folder: Path) -> Path:
    """Make a folder that only the owner may enter, with missing parents; an existing folder of ours becomes private.

    Raises:
        OSError: it cannot be created.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=_FOLDER, exist_ok=True)  # `parents=True` would make parents with the umask
    _close(folder, _FOLDER)
    return folder


def private_file(path: Path) -> Path:
    """Make an empty file that only the owner may read; an existing file of ours becomes private. Raises OSError."""
    path.touch(mode=_FILE)
    _close(path, _FILE)
    return path


def open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file; a new one is private. `mode` as for `open`, in bytes. Raises OSError."""
    file: IO[bytes] = open(path, mode, opener=lambda name, flags: os.open(name, flags, _FILE))  # noqa: SIM115 - `Path.open` takes no opener
    return file


def part_beside(path: Path) -> Path:
    """Return a temporary path in the folder of `path` that nobody can guess.

    With a predictable name, whoever may write to that folder could plant a link, and the content would be written to
    its target.
    """
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")


def open_new(path: Path, mode: int = 0o666) -> BinaryIO:
    """Open a new file without following links. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(path, flags, mode), "wb")


def _close(path: Path, mode: int) -> None:
    facts = path.stat()
    if facts.st_mode & _OTHERS and facts.st_uid == os.geteuid():
        path.chmod(mode)
