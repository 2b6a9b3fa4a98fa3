"""Temporary folders that do not outlive killed processes: the next process that makes one deletes them."""

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

_NEW_SECONDS: Final = 60.0  # younger folders may not be locked yet


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Make a private folder for this process, deleted afterwards; first delete those of killed processes.

    Args:
        prefix: prefix of its name, and of the folders to clean up.
        parent: its parent; None is the system's folder for temporary files.

    Raises:
        OSError: it cannot be created.
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
    """Delete the folders that no living process holds; skips those of other users and links.

    Args:
        younger_too: include recent ones, if a lock keeps others from making one meanwhile.
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
    """Lock a folder until this process ends, in any way. Raises BlockingIOError if another process has it."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held
