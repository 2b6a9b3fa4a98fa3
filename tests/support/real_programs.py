"""Real servers of other environments, which a test starts and talks to over HTTP."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.real_services import wait_until


@contextmanager
def running(
    command: Sequence[str], url: str, folder: Path, what: str, seconds: float, env: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server until its `/health` answers, and end it with all its children.

    Args:
        command: what starts it.
        url: of the server.
        folder: its working folder, where its log goes.
        what: its name, for the error.
        seconds: how long it may take to answer.
        env: its environment; None is that of the tests.
    """
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=env, start_new_session=True)
    try:
        wait_until(lambda: _is_answered(f"{url}/health"), seconds, f"{what} to answer")
        yield
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def _is_answered(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).is_success
    except httpx.TransportError:
        return False
