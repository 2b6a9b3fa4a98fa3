"""The faults of PostgreSQL, Redis and the connections to them."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from signal import SIGINT, SIGQUIT
from typing import Final

import psycopg

from bench.chaos.journal import Journal
from bench.chaos.place import DATABASE, Servers
from bench.harness.services import PostgresServer

Mend = Callable[[], None]
_BETWEEN_SECONDS: Final = (5.0, 20.0)  # of two restarts in a row
_DOWN_SECONDS: Final = (0.0, 5.0)


def server_faults(servers: Servers, journal: Journal, rng: random.Random) -> Mapping[str, Callable[[], Mend | None]]:
    """The start of each fault, which returns its repair."""
    postgres, redis, proxy = servers.postgres, servers.redis, servers.proxy
    return {
        "redis lost": lambda: _after(redis.kill, redis.start),
        "redis wiped": lambda: _after(redis.wipe, None),
        "postgres restarted fast": lambda: _after(partial(postgres.stop, SIGINT), postgres.start),
        "postgres restarted at once": lambda: _after(partial(postgres.stop, SIGQUIT), postgres.start),
        "postgres restarted again and again": lambda: _restarted(postgres, journal, rng),
        "backends terminated": lambda: _after(partial(_terminate, postgres, journal), None),
        "connections cut": lambda: _after(proxy.cut, None),
        "connections refused": lambda: _after(proxy.refuse, proxy.resume),
        "connections stalled": lambda: _after(proxy.stall, proxy.resume),
        "connections half closed": lambda: _after(proxy.half_close, proxy.resume),
        "connections used up": lambda: _used_up(postgres, journal),
    }


def _after(begin: Callable[[], None], mend: Mend | None) -> Mend | None:
    begin()
    return mend


def _restarted(postgres: PostgresServer, journal: Journal, rng: random.Random) -> Mend:
    """Every 5 to 20 seconds, away for up to 5."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(rng.uniform(*_BETWEEN_SECONDS)):
            postgres.stop(SIGINT)
            over.wait(rng.uniform(*_DOWN_SECONDS))
            postgres.start()
            journal.write("restarted", what_was="postgres")

    thread = threading.Thread(target=go_on, name="restarts")
    thread.start()

    def end() -> None:
        over.set()
        thread.join()

    return end


def _terminate(postgres: PostgresServer, journal: Journal) -> None:
    """The server ends every session in the midst of whatever it does."""
    with suppress(psycopg.OperationalError), postgres.connected(DATABASE) as connection:
        ended = connection.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
        journal.write("terminated", backends=ended[0] if ended else 0)


def _used_up(postgres: PostgresServer, journal: Journal) -> Mend:
    """Every place for a connection is taken by somebody else, and whoever had one has lost it."""
    _terminate(postgres, journal)
    taken = list(_taken(postgres))
    journal.write("used up", connections=len(taken))

    def give_back() -> None:
        for connection in taken:
            with suppress(psycopg.Error):
                connection.close()

    return give_back


def _taken(postgres: PostgresServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with suppress(psycopg.OperationalError):  # the server has no place left, or is away
        while True:
            yield postgres.connected(DATABASE)
