"""The folder of uploads, per process and under the home, so that leftovers of a killed server are found."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from onboard.domain.private import private_folder
from onboard.domain.temporary import hold, remove_abandoned
from onboard.errors import NotAllowedError, StorageError

FOLDER: Final = "uploads"
_LOCK: Final = "lock"


@contextmanager
def upload_folder(home: Path) -> Iterator[Path]:
    """Create a folder for uploads that is deleted afterwards; first delete those of dead servers.

    Raises:
        NotAllowedError: the home is read-only.
        StorageError: its disk is full.
    """
    from filelock import FileLock

    try:
        parent = private_folder(home / FOLDER)
        with FileLock(parent / _LOCK, mode=0o600):
            remove_abandoned(parent, younger_too=True)
            own = Path(tempfile.mkdtemp(dir=parent))
            held = hold(own)
    except PermissionError as error:
        raise NotAllowedError("upload-folder-forbidden", folder=home / FOLDER) from error
    except OSError as error:
        raise StorageError("uploads-not-stored", reason=error.strerror or error) from error
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        os.close(held)
