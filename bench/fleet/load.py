"""What PostgreSQL, Redis and the workers spend while the fleet runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psutil
import redis
from sqlalchemy import text

from bench.harness.programs import resident
from onboard.registry.database import Database

_DATABASE = """
    SELECT active_time, xact_commit, pg_database_size(datname) AS bytes,
           (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()) AS connections
    FROM pg_stat_database WHERE datname = current_database()
"""


@dataclass(frozen=True)
class Load:
    """Sums since the start of the servers, and the size of things now.

    Args:
        active_ms: milliseconds that connections of the database were executing statements.
        commits: transactions.
        bytes: of the database.
        connections: open ones.
        postgres_cpu, worker_cpu: processor seconds.
        redis_bytes: memory of its data.
        worker_bytes: resident memory of all workers, pages that they share counted once for each.
    """

    active_ms: float
    commits: int
    bytes: int
    connections: int
    postgres_cpu: float
    worker_cpu: float
    redis_bytes: int
    worker_bytes: int


def load_now(database: Database, redis_url: str, postmaster: int, workers: list[int]) -> Load:
    """Read everything once."""
    with database.read() as session:
        row = session.execute(text(_DATABASE)).one()
    with redis.Redis.from_url(redis_url) as client:
        memory: dict[str, Any] = client.info("memory")
    families = [process for pid in workers for process in _family(pid)]
    return Load(
        active_ms=float(row.active_time),
        commits=int(row.xact_commit),
        bytes=int(row.bytes),
        connections=int(row.connections),
        postgres_cpu=_cpu(_family(postmaster)),
        worker_cpu=_cpu(families),
        redis_bytes=int(memory["used_memory"]),
        worker_bytes=sum(resident(process) for process in families),
    )


def _family(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _cpu(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total
