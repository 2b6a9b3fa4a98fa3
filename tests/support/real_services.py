"""Real PostgreSQL and Redis for tests: those of the measurements."""

from __future__ import annotations

from functools import partial
from typing import Final

from bench.harness import services
from bench.harness.services import PostgresServer, RedisServer, free_port, missing

__all__ = ["PostgresServer", "RedisServer", "free_port", "missing", "wait_until"]

_LONGEST_PAUSE_SECONDS: Final = 0.2  # tests measure no times, and each look at a database takes milliseconds

wait_until = partial(services.wait_until, longest_pause=_LONGEST_PAUSE_SECONDS)
