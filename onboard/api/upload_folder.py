"""The folder of uploads: one of this process under the home, so that what a killed server left is found again."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from onboard.domain.private import private_folder
from onboard.errors import NotAllowedError, StorageError

FOLDER: Final = "uploads"
_LOCK: Final = "lock"


@contextmanager
def upload_folder(home: Path) -> Iterator[Path]:
    """A folder for uploads that is gone afterwards. Those of servers that live no more are removed first.

    Raises:
        NotAllowedError: the home is read-only.
        StorageError: its disk is full.
    """
    from filelock import FileLock

    try:
        parent = private_folder(home / FOLDER)
        with FileLock(parent / _LOCK, mode=0o600):
            _sweep(parent)
            own = Path(tempfile.mkdtemp(dir=parent))
            held = _hold(own)
    except PermissionError as error:
        raise NotAllowedError("upload-folder-forbidden", folder=home / FOLDER) from error
    except OSError as error:
        raise StorageError("uploads-not-stored", reason=error.strerror or error) from error
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(held)


def _sweep(parent: Path) -> None:
    """Remove the folders that no living process holds."""
    for folder in parent.iterdir():
        if not folder.is_dir() or folder.is_symlink():
            continue
        try:
            held = _hold(folder)
        except BlockingIOError:
            continue
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _hold(folder: Path) -> int:
    """A lock that ends with this process, however it ends. Raises BlockingIOError when another has it."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held
