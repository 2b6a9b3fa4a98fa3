"""The two places that requests and the queue are measured in: SQLite with a folder of bells, PostgreSQL with Redis."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

from sqlalchemy import insert, text
from sqlalchemy.orm import Session

from bench.harness.programs import ended_in_order
from bench.harness.services import PostgresServer, RedisServer, missing
from onboard.registry.database import Database
from onboard.registry.schema import upgrade
from onboard.registry.tables import EmbeddingVersionRow
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings

MANY: Final = "sst2"  # the task with many versions: a source of every base
PLACES: Final = {"sqlite": "SQLite", "postgres": "PostgreSQL"}


def measurable() -> list[str]:
    """The places that this machine has the programs for; says which one it leaves out."""
    lacking = missing("postgres") or missing("redis-server")
    if lacking:
        print(f"skipped: {lacking} is not installed")
    return [name for name in PLACES if name == "sqlite" or not lacking]


@contextmanager
def deployed(name: str) -> Iterator[tuple[Settings, Path]]:
    """Settings of one of the places, with a tiny base, and a folder for anything else, until the end of the block.

    SIGTERM ends the block, and with it the servers, too.
    """
    from bench.harness.tiny_base import make_tiny_base

    with ended_in_order(), tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        settings = Settings(home=folder / "home", base=str(make_tiny_base(folder / "base").folder), device="cpu")
        if name == "sqlite":
            yield settings, folder
            return
        with PostgresServer(durable=True) as postgres, RedisServer() as redis:
            upgrade(url := postgres.create("measured"))
            yield settings.model_copy(update={"database_url": url, "broker_url": redis.url}), folder


def add_versions(session: Session, count: int) -> None:
    """Copy the first version of MANY until it has so many."""
    first = VersionRepository(session).resolve(f"{MANY}@v1")
    rows = [{**asdict(replace(first, version=number)), "created_at": float(number)} for number in range(2, count + 1)]
    session.execute(insert(EmbeddingVersionRow), rows)


def analyse(database: Database) -> None:
    """Let PostgreSQL know how many rows there are now."""
    if not database.is_sqlite:
        with database.write() as session:
            session.execute(text("ANALYZE"))
