"""Real PostgreSQL and Redis for tests: those of the measurements."""

from bench.harness.services import PostgresServer, RedisServer, free_port, missing, wait_until

__all__ = ["PostgresServer", "RedisServer", "free_port", "missing", "wait_until"]
