"""The program `onboard`, and the environment that it and its servers are started in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from bench.harness.command import CHECKOUT
from onboard.settings import Settings

PROGRAM: Final = str(Path(sys.executable).with_name("onboard"))
_GIVEN: Final = ("home", "base", "device", "database_url", "broker_url", "artifact_url")


def inherited() -> dict[str, str]:
    """This process's environment without any setting of the service."""
    return {key: value for key, value in os.environ.items() if not key.startswith("ONBOARD_")}


def environment_of(settings: Settings) -> dict[str, str]:
    """The same with these settings."""
    given = {f"ONBOARD_{name.upper()}": str(value) for name in _GIVEN if (value := getattr(settings, name))}
    return {**inherited(), **given}


def start_worker(
    settings: Settings,
    name: str,
    *options: str,
    log: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[bytes]:
    """Start `python -m workers` in a process group that is not this one's.

    Args:
        settings: of the worker, which reads them from its standard input.
        name: of the worker.
        options: further ones of its command line, such as `--device cpu`.
        log: file to append its output to, whose folder it works in; None discards the output.
        environment: variables besides the inherited ones.
    """
    command = [sys.executable, "-m", "workers", "--settings-from-stdin", "--name", name, *options]
    with (log or Path(os.devnull)).open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, cwd=log.parent if log else None,
            start_new_session=True, env={**inherited(), "PYTHONPATH": str(CHECKOUT), **(environment or {})},
        )  # fmt: skip
    _give_settings(process, settings)
    return process


def _give_settings(process: subprocess.Popen[bytes], settings: Settings) -> None:
    """Hand a worker its settings, as whoever starts one does; one that has ended already gets none."""
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as pipe:
        pipe.write(json.dumps(settings.model_dump(mode="json", exclude={"token"})).encode())


def resident(process: psutil.Process) -> int:
    """Bytes of memory that a process has; 0 when it has ended."""
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def answer(words: list[str], environment: Mapping[str, str], program: str = PROGRAM) -> dict[str, Any]:
    """The document that a command prints with --json. Raises CalledProcessError when it fails."""
    done = subprocess.run([program, *words, "--json"], env=environment, check=True, capture_output=True, text=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@contextmanager
def ended_in_order() -> Iterator[None]:
    """SIGTERM ends the block as an exception does, so that everything started in it is ended. For the main thread."""
    before = signal.signal(signal.SIGTERM, lambda *_signal: sys.exit(1))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def in_a_process(run: Callable[[], object]) -> tuple[int, int]:
    """Run it in a copy of this process, which has everything imported; its id, and how it ended."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return pid, status
