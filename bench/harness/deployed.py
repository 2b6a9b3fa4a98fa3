"""The two places that requests and the queue are measured in: SQLite with a folder of bells, PostgreSQL with Redis."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.harness.services import PostgresServer, RedisServer, missing
from onboard.registry.schema import upgrade
from onboard.settings import Settings

PLACES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def measurable() -> list[str]:
    """The places that this machine has the programs for; says which one it leaves out."""
    lacking = missing("postgres") or missing("redis-server")
    if lacking:
        print(f"skipped: {lacking} is not installed")
    return [name for name in PLACES if name == "sqlite" or not lacking]


@contextmanager
def deployed(name: str) -> Iterator[tuple[Settings, Path]]:
    """Settings of one of the places, with a tiny base, and a folder for anything else, until the end of the block."""
    from bench.harness.tiny_base import make_tiny_base

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        settings = Settings(home=folder / "home", base=str(make_tiny_base(folder / "base").folder), device="cpu")
        if name == "sqlite":
            yield settings, folder
            return
        with PostgresServer(durable=True) as postgres, RedisServer() as redis:
            upgrade(url := postgres.create("measured"))
            yield settings.model_copy(update={"database_url": url, "broker_url": redis.url}), folder
