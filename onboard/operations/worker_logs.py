"""The log files of the detached workers: the present one, and one more with the lines before it."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from onboard.domain.private import open_private
from onboard.settings import Settings

LOG_BYTES: Final = 10 * 2**20  # of each of the two files


def log_file(home: Path) -> Path:
    """Where the detached workers of the embedded default write."""
    return home / "logs" / "worker.log"


def full_log_file(home: Path) -> Path:
    """Where the lines go that `log_file` had when it was full."""
    return log_file(home).with_name("worker.log.1")


def log_files(settings: Settings) -> tuple[Path, ...]:
    """The logs of workers that can be read on this machine, the present one last.

    A deployment with servers has workers on many machines, whose logs are kept by whoever started them.
    """
    home = settings.resolved_home
    return (full_log_file(home), log_file(home)) if settings.embedded else ()


def shorten_log(home: Path) -> None:
    """When the log of the detached workers has grown beyond LOG_BYTES, move what is in it to the other file.

    It is emptied, not renamed: workers and the libraries in them hold it open, and go on writing to it.
    """
    with suppress(FileNotFoundError, PermissionError), log_file(home).open("r+b") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # workers of several queues share it
        if os.fstat(log.fileno()).st_size <= LOG_BYTES:
            return
        with suppress(OSError), open_private(full_log_file(home), "wb") as full:  # a full disk: the old lines are lost
            shutil.copyfileobj(log, full)
        log.truncate(0)
