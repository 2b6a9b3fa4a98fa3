"""Restart a worker in the same process, with empty memory."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from collections.abc import Iterable, Sequence

from onboard.jobs.detached import SETTINGS_FROM_STDIN
from workers.plan import WorkerPlan


def begin_anew(plan: WorkerPlan, children: Iterable[int]) -> None:
    """Start this program again in this very process, under the same name; it does not return.

    Whoever started it (systemd, a container, a submitter) sees the same process. A worker that was not started as its
    own program exits with status 1 instead.

    Args:
        children: its pool's killed processes, which have to be reaped here.
    """
    for pid in children:
        with contextlib.suppress(ChildProcessError):  # the pool was quicker
            os.waitpid(pid, 0)
    logging.shutdown()
    if not plan.is_program:
        os._exit(1)
    if SETTINGS_FROM_STDIN in sys.orig_argv:
        _hand_settings_on(plan)
    os.execv(sys.executable, arguments(sys.orig_argv, plan.name))


def arguments(before: Sequence[str], name: str) -> list[str]:
    """The same again, with the name that the worker may have made up: the last one given counts."""
    return [sys.executable, *before[1:], "--name", name]


def _hand_settings_on(plan: WorkerPlan) -> None:
    """They came through a pipe that has been read: another one, which holds them until they are."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as pipe:
        pipe.write(json.dumps(plan.settings.for_worker()).encode())
    os.dup2(read, 0)
