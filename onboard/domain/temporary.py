"""Temporary folders that do not stay when a process is killed: the next one that makes such a folder removes them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_NEW_SECONDS: Final = 60.0  # a folder so young may be held only in a moment


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A folder for this process and its owner alone, gone afterwards; those that killed processes left go first.

    Args:
        prefix: begins its name, and the names of the folders that are looked at.
        parent: where it lies; None is the system's folder for temporary files.

    Raises:
        OSError: it cannot be made.
    """
    place = Path(tempfile.gettempdir()) if parent is None else parent
    remove_abandoned(place, prefix)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
    held = hold(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def remove_abandoned(parent: Path, prefix: str = "", younger_too: bool = False) -> None:
    """Remove the folders that no living process holds; others' and links are left alone.

    Args:
        prefix: of their names.
        younger_too: also those made just now, where a lock keeps others from making one meanwhile.
    """
    for folder in parent.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            facts = folder.lstat()
            is_own = folder.is_dir() and not folder.is_symlink() and facts.st_uid == os.geteuid()
            if not is_own or (not younger_too and time.time() - facts.st_mtime < _NEW_SECONDS):
                continue
            held = hold(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)


def hold(folder: Path) -> int:
    """A lock on a folder that ends with this process, however it ends. Raises BlockingIOError when another has it."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held
