"""The processes of workers on this machine: their host's name, a fresh name, and whether one is still there."""

from __future__ import annotations

import secrets
import socket

import psutil

from onboard.domain.worker import STARTING_SECONDS, WorkerRecord


def host_name() -> str:
    """The name of this machine (or container)."""
    return socket.gethostname()


def worker_name() -> str:
    """A fresh name for a worker of this machine."""
    return f"{host_name()}-{secrets.token_hex(3)}"


def is_alive(pid: int, born_before: float) -> bool:
    """Whether the process `pid` runs here. One born after `born_before` (epoch seconds) only has its number."""
    try:
        process = psutil.Process(pid)
        return bool(process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= born_before)
    except psutil.NoSuchProcess:
        return False


def lives(worker: WorkerRecord) -> bool:
    """Whether a worker's process is there, as far as this machine can see."""
    if worker.pid is None or worker.host != host_name():
        return True
    return is_alive(worker.pid, worker.heartbeat_at + STARTING_SECONDS)
