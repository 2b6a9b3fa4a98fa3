"""Real PostgreSQL and Redis for measurements and tests: Debian's binaries on free ports, also as root."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import psycopg
import redis

_SECONDS = 60.0  # for a server to come up
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.05


def missing(program: str) -> str | None:
    """The program's name when it is not installed, else None."""
    return None if _find(program) else program


def _find(program: str) -> str | None:
    debian = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return str(debian[-1]) if debian else shutil.which(program)


def free_port() -> int:
    """A port that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until(
    condition: Callable[[], Any],
    seconds: float = _SECONDS,
    what: str = "the condition",
    longest_pause: float = _LONGEST_PAUSE_SECONDS,
) -> Any:
    """Poll until `condition()` is true and return what it returned; AssertionError after `seconds`.

    The longer it takes, the less often it looks, up to `longest_pause`, so that looking does not slow down the work.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < seconds:
        if answer := condition():
            return answer
        time.sleep(min(longest_pause, _PAUSE_SECONDS + waited / 20))
    raise AssertionError(f"waited {seconds} s in vain for {what}")


class PostgresServer:
    """A throw-away server. PostgreSQL refuses root, so that root runs it as `nobody`.

    Args:
        durable: whether it forces every commit to disk, as a server in earnest does; needless where nobody pulls plugs.
    """

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="onboard-postgres-"))
        self._user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
        if self._user:
            shutil.chown(self._folder, "nobody")
        self.port = free_port()
        initdb = [_program("initdb"), "-D", str(self._data), "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=self._folder, **self._user)
        self._log = (self._folder / "log").open("wb")
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [f"port={self.port}", f"unix_socket_directories={self._folder}"]
        settings += [] if self._durable else ["fsync=off", "full_page_writes=off"]
        options = [part for setting in settings for part in ("-c", setting)]
        self._process = subprocess.Popen(
            [_program("postgres"), "-D", str(self._data), *options],
            stdout=self._log,
            stderr=self._log,
            cwd=self._folder,
            **self._user,
        )
        wait_until(self._answers, what="PostgreSQL")

    @property
    def pid(self) -> int:
        """Of its first process, the parent of all others."""
        return self._process.pid

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT is its fast shutdown, SIGQUIT the immediate one, which recovers at the next start."""
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def url(self, name: str, port: int | None = None) -> str:
        """SQLAlchemy's URL of a database, perhaps through another port."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{port or self.port}/{name}"

    def connected(self, name: str) -> psycopg.Connection[Any]:
        """A connection of the server's owner to a database, which commits every statement."""
        return psycopg.connect(self._dsn.replace("dbname=postgres", f"dbname={name}"), autocommit=True)

    def create(self, name: str) -> str:
        """Make a database and return its URL."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)

    def wipe(self, name: str) -> None:
        """Empty every table but those of the schema itself, and cut off whoever is still connected."""
        with psycopg.connect(self._dsn.replace("dbname=postgres", f"dbname={name}")) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            tables = connection.execute(
                "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
                " WHERE schemaname = 'public' AND tablename NOT IN ('alembic_version', 'schema_compatibility')"
            ).fetchone()
            assert tables is not None
            connection.execute(f"TRUNCATE {tables[0]} RESTART IDENTITY CASCADE".encode())

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    @property
    def _dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self._dsn):
            return True
        return False


class RedisServer:
    """A throw-away server without persistence: what it knew is gone when it is killed."""

    def __enter__(self) -> Self:
        self.port = free_port()
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        """Celery's URL of it."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, empty, and wait until it answers."""
        command = [_program("redis-server"), "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="Redis")

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()
        self._process.wait()

    def wipe(self) -> None:
        """Forget every message."""
        with redis.Redis(port=self.port) as client:
            client.flushall()

    def length(self, queue: str) -> int:
        """How many messages wait in a list."""
        with redis.Redis(port=self.port) as client:
            return int(client.llen(queue))

    def _answers(self) -> bool:
        with contextlib.suppress(redis.ConnectionError), redis.Redis(port=self.port) as client:
            return bool(client.ping())
        return False


def _program(name: str) -> str:
    path = _find(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not installed (apt-get install postgresql redis-server)")
    return path
