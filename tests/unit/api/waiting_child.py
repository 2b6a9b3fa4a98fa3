"""What a child of the intake does in tests: it says that it is there, and waits until it is killed, or dies."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

from onboard.domain.submission import Submission
from onboard.errors import InputError


def wait_for_ever(
    submission: Submission, _base: str = "", *, outside: object = None, pace: object = None
) -> dict[str, Any]:
    """Leaves its number beside the dataset's folder."""
    _say_so(submission)
    threading.Event().wait()
    raise AssertionError("nobody ends it")


def die(submission: Submission, _base: str = "", *, outside: object = None, pace: object = None) -> dict[str, Any]:
    """As the system does to a process that takes too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("it was killed")


def say_who(submission: Submission, _base: str = "", *, outside: object = None, pace: object = None) -> dict[str, Any]:
    """Fails by the number of its process."""
    raise InputError(f"{os.getpid()}, {submission.dataset}")


def take_two_gigabytes(
    submission: Submission, _base: str = "", *, outside: object = None, pace: object = None
) -> dict[str, Any]:
    """As a hostile dataset would."""
    return {"taken": len(bytearray(2 << 30))}


def _say_so(submission: Submission) -> None:
    marker = Path(submission.task or "")
    marker.with_suffix(".part").write_text(str(os.getpid()), encoding="utf-8")
    marker.with_suffix(".part").rename(marker)
