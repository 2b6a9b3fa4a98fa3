"""Call a function in a child process, which ends with the call, with this process, or when the caller is gone.

The process is forked from a server that has already imported everything, so it starts within milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
LOOK_SECONDS: Final = 0.5  # interval of checks whether the caller still waits
_IMPORTED: Final = ["onboard.api.preloaded"]


class ChildDiedError(Exception):
    """The process ended without an answer: it crashed, or the system killed it."""


class ChildMemoryError(Exception):
    """It exceeded its memory limit."""


class ChildDeadlineError(Exception):
    """It exceeded its time limit and was killed."""


class AbandonedError(Exception):
    """The caller is gone; the process was killed."""


class Bounds(NamedTuple):
    """Memory and time limits of a call."""

    most_bytes: int
    most_seconds: float


def call_in_child(
    abandoned: Callable[[], bool],
    bounds: Bounds,
    do: Callable[_Given, _Result],
    *args: _Given.args,
    **kwargs: _Given.kwargs,
) -> _Result:
    """Return, or raise, the result of `do` in a new process; everything must be picklable.

    Args:
        abandoned: called twice a second; True gives up.

    Raises:
        ChildDiedError, ChildMemoryError, ChildDeadlineError, AbandonedError: see there.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, bounds.most_bytes, do, args, kwargs), daemon=True)
    process.start()
    theirs.close()
    deadline = time.monotonic() + bounds.most_seconds
    try:
        while not ours.poll(LOOK_SECONDS):
            if abandoned():
                raise AbandonedError
            if time.monotonic() > deadline:
                raise ChildDeadlineError
        succeeded, outcome = _answer(ours)
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()
    if not succeeded:
        raise outcome
    result: _Result = outcome
    return result


def _answer(ours: Connection[Any, Any]) -> tuple[bool, Any]:
    try:
        answer: tuple[bool, Any] = ours.recv()
    except (EOFError, OSError) as error:
        raise ChildDiedError from error
    return answer


def _work(theirs: Connection[Any, Any], most_bytes: int, do: Callable[..., Any], args: Any, kwargs: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    resource.setrlimit(resource.RLIMIT_DATA, (most_bytes, most_bytes))
    answer: tuple[bool, Any]
    try:
        answer = (True, do(*args, **kwargs))
    except MemoryError:
        answer = (False, ChildMemoryError())
    except Exception as error:  # noqa: BLE001 - a process's outermost edge: the parent raises it again
        answer = (False, error)
    theirs.send(answer)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
