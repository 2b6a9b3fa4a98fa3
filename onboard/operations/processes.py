"""Processes of workers on this machine: host name, new worker names, liveness."""

from __future__ import annotations

import secrets
import socket

import psutil

from onboard.domain.worker import STARTING_SECONDS, WorkerRecord


def host_name() -> str:
    """Return the name of this machine or container."""
    return socket.gethostname()


def worker_name() -> str:
    """Return a new name for a worker on this machine."""
    return f"{host_name()}-{secrets.token_hex(3)}"


def is_alive(pid: int, born_before: float) -> bool:
    """Return whether process `pid` runs here. One started after `born_before` (epoch seconds) has only reused the
    number.
    """
    try:
        process = psutil.Process(pid)
        return bool(process.status() != psutil.STATUS_ZOMBIE and process.create_time() <= born_before)
    except psutil.NoSuchProcess:
        return False


def lives(worker: WorkerRecord) -> bool:
    """Return whether a worker's process is alive; True for workers on other machines."""
    if worker.pid is None or worker.host != host_name():
        return True
    return is_alive(worker.pid, worker.heartbeat_at + STARTING_SECONDS)
