"""Celery's pool of one process: without a lock that a killed process would take with it, and what it is doing."""

from __future__ import annotations

from typing import Any

from billiard import pool as billiard_pool
from celery.concurrency import prefork
from celery.worker.state import active_requests


class _NoLock:
    """In place of a lock that guards what has one user only."""

    def acquire(self, *_block_and_timeout: object) -> bool:
        return True

    def release(self) -> None:
        """Nothing was taken."""

    def __enter__(self) -> None:
        """Nothing is taken."""

    def __exit__(self, *_error: object) -> None:
        """Nothing was taken."""


class _Pool(billiard_pool.Pool):  # type: ignore[misc]  # billiard has no types
    """The pool where the broker is a folder: its one process reads bells from a pipe and writes to another one.

    Billiard's locks on the processes' ends are for several of them. A process that waits holds the one for reading, so
    that the successor of one that was killed then would wait for ever.
    """

    def _setup_queues(self) -> None:
        super()._setup_queues()
        self._inqueue._rlock = _NoLock()
        self._outqueue._wlock = _NoLock()


class TaskPool(prefork.TaskPool):  # type: ignore[misc]  # celery has no types
    """The setting `worker_pool`; with Redis each process has pipes of its own, which have no locks."""

    BlockingPool = _Pool


def process_ids(pool: Any) -> set[int]:
    """The processes of Celery's pool at the moment; none where it has not begun."""
    inner = getattr(pool, "_pool", None)
    return {process.pid for process in list(inner._pool)} if inner is not None else set()


def bell_in_hand(pool: Any) -> str | None:
    """Which bell a living process of the pool is answering, by its id. None: it is free.

    Celery goes on counting what a killed process was answering for a second or more.
    """
    present = process_ids(pool)
    requests = [request() for request in active_requests.data.copy()]  # another thread adds and removes them
    return next((request.id for request in requests if request and request.worker_pid in present), None)
