"""Detached workers: in embedded mode, whoever submits a job also makes sure that a worker runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from onboard.domain.private import open_private, private_folder
from onboard.domain.release import release_number, release_of
from onboard.domain.worker import Trouble, WorkerRecord, WorkerState
from onboard.errors import DamagedError
from onboard.jobs.doorbell import DEFAULT_QUEUE
from onboard.operations.processes import host_name, lives, worker_name
from onboard.operations.worker_logs import log_file, shorten_log
from onboard.registry.schema import home_trouble
from onboard.registry.services import Services
from onboard.registry.workers import WorkerRepository
from onboard.settings import environment_of_worker

SETTINGS_FROM_STDIN: Final = "--settings-from-stdin"  # option of `python -m workers`
IDLE_EXIT_SECONDS: Final = 60.0
_LOST_SECONDS: Final = 900.0  # a process without a heartbeat for this long may hang
spawned: Final[list[subprocess.Popen[bytes]]] = []  # Python warns about processes without a reference


def ensure_worker(
    services: Services,
    queue: str = DEFAULT_QUEUE,
    *,
    idle_exit_seconds: float = IDLE_EXIT_SECONDS,
    pipeline: str = "onboard.pipeline.run",
) -> str | None:
    """Start a worker for `queue` unless one is alive. Call it after committing the job, as a worker may just have
    exited.

    The worker is detached: it survives the submitter and its Ctrl-C, and exits after `idle_exit_seconds` without work.

    Returns:
        The name of the started worker, or None if one is alive or this is not embedded mode, which is the only one that
        starts workers itself.
    """
    if not (services.settings.embedded and services.settings.start_worker):
        return None
    from filelock import FileLock

    home = services.settings.resolved_home
    with _usable(home), FileLock(home / "worker.lock", mode=0o600):
        with services.database.write() as session:
            workers = WorkerRepository(session)
            if any(_serves(worker, queue) for worker in workers.list()):
                return None
            name = worker_name()
            workers.enter(name, WorkerState.STARTING, queues=[queue], host=host_name(), device=services.device)
        pid = _spawn(services, home, name, queue, idle_exit_seconds, pipeline)
        with services.database.write() as session:
            WorkerRepository(session).spawned(name, pid)
    return name


def _serves(worker: WorkerRecord, queue: str) -> bool:
    """Return whether the worker takes, or will take, jobs of the queue.

    On a machine short of CPU or memory, an old heartbeat proves little; the worker's process does. After an upgrade,
    old workers do not take our jobs.
    """
    if worker.state is WorkerState.DRAINING or worker.faulty or queue not in worker.queues:
        return False
    breathes = worker.pid is not None and worker.host == host_name() and worker.heartbeat_age_seconds < _LOST_SECONDS
    return (worker.live or breathes) and lives(worker) and release_of(worker.facts) >= release_number()


def require_no_trouble(services: Services, queue: str) -> None:
    """Raise DamagedError if the last worker of the queue exited because it could not load what jobs need.

    Another worker would fail too, and whoever waits for the job has to know.
    """
    with services.database.read() as session:
        rows = [row for row in WorkerRepository(session).list(include_stopped=True) if queue in row.queues]
    last = max(rows, key=lambda row: row.started_at, default=None)
    trouble = None if last is None else Trouble.read(last.facts.get("trouble"))
    if last is not None and last.state is WorkerState.STOPPED and trouble is not None and trouble.stops:
        raise DamagedError(
            "detached-worker-left",
            last=last.name,
            reason=trouble.message,
            advice=trouble.remedy.rstrip("."),
            queue=queue,
        )


@contextmanager
def _usable(home: Path) -> Iterator[None]:
    """Convert errors about a lock or log in the home, such as a full disk, to onboard errors."""
    try:
        yield
    except OSError as error:
        raise home_trouble(home, error, error.filename) from error


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
            env=environment_of_worker(services.settings),
        )
    spawned.append(process)
    assert process.stdin is not None
    with process.stdin as pipe:  # pass our settings: only the home is in the worker's environment
        pipe.write(json.dumps(services.settings.for_worker()).encode())
    return process.pid


def _log_file(home: Path) -> Path:
    log = log_file(home)
    private_folder(log.parent)
    shorten_log(home)
    return log
