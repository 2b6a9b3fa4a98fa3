"""A call in a process of its own, which ends with the call, with this process, or when nobody waits for it any more."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
LOOK_SECONDS: Final = 0.5  # between looks whether somebody still waits


class ChildDiedError(Exception):
    """The process ended without an answer: it crashed, or the system killed it."""


class ChildMemoryError(Exception):
    """It needed more memory than it may have."""


class AbandonedError(Exception):
    """Nobody waits for the answer any more; the process was killed."""


def call_in_child(
    abandoned: Callable[[], bool],
    most_bytes: int,
    do: Callable[_Given, _Result],
    *args: _Given.args,
    **kwargs: _Given.kwargs,
) -> _Result:
    """What `do` returns, or raises, in a fresh process; all of it has to be picklable.

    Args:
        abandoned: asked twice a second whether to give up.
        most_bytes: memory that it may have.

    Raises:
        ChildDiedError, ChildMemoryError, AbandonedError: see there.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_work, args=(theirs, most_bytes, do, args, kwargs), daemon=True)
    process.start()
    theirs.close()
    try:
        while not ours.poll(LOOK_SECONDS):
            if abandoned():
                raise AbandonedError
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
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
