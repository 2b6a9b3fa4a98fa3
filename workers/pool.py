"""Celery's pool of one process: without a lock that a killed process would take with it, and what it is doing."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from billiard import pool as billiard_pool
from celery.concurrency import prefork
from celery.worker.state import active_requests


class _NoLock(nullcontext[None]):
    """In place of a lock that guards what has one user only; the pool takes it as it ends, and never gives it back."""

    def acquire(self) -> None:
        """Nothing is taken."""


class _Pool(billiard_pool.Pool):  # type: ignore[misc]  # billiard has no types
    """The pool if the broker is a folder: its only process reads messages from one pipe and writes to another.

    Billiard's locks on the processes' ends are for several of them. A process that waits holds the one for reading, so
    that the successor of one that was killed then would wait for ever.
    """

    def _setup_queues(self) -> None:
        super()._setup_queues()
        self._inqueue._rlock = _NoLock()
        self._outqueue._wlock = _NoLock()


class TaskPool(prefork.TaskPool):  # type: ignore[misc]  # celery has no types
    """The setting `worker_pool`; with Redis each process has its own pipes, which have no locks."""

    BlockingPool = _Pool

    def process_ids(self) -> set[int]:
        """The pool's processes at the moment; none where it has not begun, or has ended."""
        pool = self._pool  # of the base class; another thread changes its list of processes
        return set() if pool is None else {process.pid for process in list(pool._pool) if process.pid}


def process_ids(worker: Any) -> set[int]:
    """Those of a Celery worker's pool; none where it has not begun."""
    return worker.pool.process_ids() if isinstance(worker.pool, TaskPool) else set()


def bell_in_hand(worker: Any) -> str | None:
    """The id of the message that a live process of the worker's pool is handling. None: it is free.

    Celery goes on counting what a killed process was answering for a second or more.
    """
    present = process_ids(worker)
    requests = [request() for request in active_requests.data.copy()]  # another thread adds and removes them
    return next((request.id for request in requests if request and request.worker_pid in present), None)
