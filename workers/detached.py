"""The detached start: on the embedded default, whoever submits also sees to it that a worker runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from onboard.domain.private import open_private, private_folder
from onboard.domain.release import release_number, release_of
from onboard.domain.worker import WorkerState
from onboard.jobs.doorbell import DEFAULT_QUEUE
from onboard.registry.services import Services
from onboard.registry.workers import WorkerRepository
from onboard.settings import environment_without_settings
from workers.logs import log_file, shorten_log
from workers.machine import host_name
from workers.recovery import lives
from workers.renewal import SETTINGS_FROM_STDIN

IDLE_EXIT_SECONDS: Final = 60.0
_spawned: list[subprocess.Popen[bytes]] = []  # kept, because Python warns about processes that outlive their handle


def ensure_worker(
    services: Services,
    queue: str = DEFAULT_QUEUE,
    *,
    idle_exit_seconds: float = IDLE_EXIT_SECONDS,
    pipeline: str = "onboard.pipeline.run",
) -> str | None:
    """Start a worker for `queue` unless one lives. Call it again once the job's row is committed: one may have left.

    It is detached: it survives the submitter and its Ctrl-C, and leaves after `idle_exit_seconds` without work.

    Returns:
        The name of the worker that was started, or None (one lives, or this is not the embedded default, where
        nothing is started by itself).
    """
    if not (services.settings.embedded and services.settings.start_worker):
        return None
    from filelock import FileLock

    from workers.run import worker_name

    home = services.settings.resolved_home
    with FileLock(home / "worker.lock", mode=0o600):
        with services.database.write() as session:
            workers = WorkerRepository(session)
            # after an upgrade the old worker leaves our jobs alone
            if any(lives(worker) and release_of(worker.facts) >= release_number() for worker in workers.serving(queue)):
                return None
            name = worker_name()
            workers.enter(name, WorkerState.STARTING, queues=[queue], host=host_name(), device=services.device)
        pid = _spawn(services, home, name, queue, idle_exit_seconds, pipeline)
        with services.database.write() as session:
            WorkerRepository(session).spawned(name, pid)
    return name


def _spawn(services: Services, home: Path, name: str, queue: str, idle_exit_seconds: float, pipeline: str) -> int:
    command = [sys.executable, "-m", "workers", SETTINGS_FROM_STDIN]
    command += ["--name", name, "--queue", queue, "--device", services.device]
    command += ["--idle-exit", str(idle_exit_seconds), "--pipeline", pipeline]
    with open_private(_log_file(home), "ab") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=home,
            env=environment_without_settings(),
        )
    _spawned.append(process)
    assert process.stdin is not None
    with process.stdin as pipe:  # settings as they are here: the worker's own environment and folder do not matter
        pipe.write(json.dumps(services.settings.for_worker()).encode())
    return process.pid


def _log_file(home: Path) -> Path:
    log = log_file(home)
    private_folder(log.parent)
    shorten_log(home)
    return log


def spawned_processes() -> Sequence[subprocess.Popen[bytes]]:
    """The workers that this process started."""
    return _spawned
