"""Jobs that no worker survives, that fail, or that never end: each has to end by itself and to harm nobody else."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

PREFIX: Final = "poison-"  # of their tasks' names
POISONS: Final = ("kills", "fails", "hangs")
HANG_LIMIT_SECONDS: Final = 4.0  # the time limit of a job that hangs


def is_poison(task: str) -> bool:
    """Whether a job of this task is one."""
    return task.startswith(PREFIX)


def act(task: str) -> None:
    """The effect of the job on its worker's process."""
    what = task.removeprefix(PREFIX)
    if what == "kills":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "fails":
        raise RuntimeError("poison")
    time.sleep(3600)
