"""The log files of detached workers: the current one and the previous one."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from onboard.domain.private import open_private
from onboard.settings import Settings

LOG_BYTES: Final = 10 * 2**20  # of each file


def log_file(home: Path) -> Path:
    """Return the log file of detached workers in embedded mode."""
    return home / "logs" / "worker.log"


def full_log_file(home: Path) -> Path:
    """Return the file with the lines from before `log_file` was full."""
    return log_file(home).with_name("worker.log.1")


def log_files(settings: Settings) -> tuple[Path, ...]:
    """Return the worker logs that can be read on this machine, the current one last.

    In a deployment with servers, workers run on many machines, and their logs are kept elsewhere.
    """
    home = settings.resolved_home
    return (full_log_file(home), log_file(home)) if settings.embedded else ()


def shorten_log(home: Path) -> None:
    """Move the contents of the log to the second file when it exceeds LOG_BYTES.

    The log is truncated rather than renamed, because workers and their libraries keep it open.
    """
    with suppress(FileNotFoundError, PermissionError), log_file(home).open("r+b") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # workers of several queues share it
        if os.fstat(log.fileno()).st_size <= LOG_BYTES:
            return
        # on a full disk, the old lines are lost
        with suppress(OSError), open_private(full_log_file(home), "wb") as full:
            shutil.copyfileobj(log, full)
        log.truncate(0)
