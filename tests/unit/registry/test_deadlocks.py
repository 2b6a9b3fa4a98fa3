"""Two transactions that wait for each other: PostgreSQL undoes one of them, which may begin anew."""

from __future__ import annotations

import threading
import time

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session
from support.refusals import refused

from onboard.registry.database import Database

pytestmark = pytest.mark.services

FIRST, SECOND = (text(f"SELECT pg_advisory_xact_lock({number})") for number in (1, 2))
WAITING = text("SELECT count(*) FROM pg_locks WHERE NOT granted")


class Opponent:
    """Takes the second lock and then, when somebody waits for that, the first: whoever has it waits in a circle."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.holds = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Opponent:
        self._thread.start()
        assert self.holds.wait(30)
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(60)

    def _run(self) -> None:
        with self._database.write() as session:
            session.execute(text("SET LOCAL deadlock_timeout = '60s'"))  # so it is the other one that is undone
            session.execute(SECOND)
            self.holds.set()
            while not self._somebody_waits():
                time.sleep(0.01)
            session.execute(FIRST)

    def _somebody_waits(self) -> bool:
        with self._database.glance() as session:
            return bool(session.scalar(WAITING))


def in_order(session: Session) -> str:
    session.execute(FIRST)
    session.execute(SECOND)
    return "done"


def test_a_deadlock_is_told_as_one(postgres_database: Database) -> None:
    with (
        Opponent(postgres_database),
        refused("database-deadlock"),
        postgres_database.write() as session,
    ):
        in_order(session)


def test_what_was_undone_begins_anew(postgres_database: Database) -> None:
    begun: list[Session] = []

    def work(session: Session) -> str:
        begun.append(session)
        return in_order(session)

    with Opponent(postgres_database):
        assert postgres_database.write_again(work) == "done"
    assert len(begun) == 2
