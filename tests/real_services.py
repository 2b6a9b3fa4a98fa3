"""Real PostgreSQL and Redis for tests: Debian's binaries on free ports, also as root and without containers."""

from __future__ import annotations

import contextlib
import os
import shutil
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


def wait_until(condition: Callable[[], Any], seconds: float = _SECONDS, what: str = "the condition") -> Any:
    """Poll until `condition()` is true and return what it returned; fail after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := condition():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


class PostgresServer:
    """A throw-away server. PostgreSQL refuses root, so that root runs it as `nobody`."""

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="onboard-postgres-"))
        self._user: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}
        if self._user:
            shutil.chown(self._folder, "nobody")
        data, self.port = self._folder / "data", free_port()
        initdb = [_find("initdb"), "-D", data, "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, cwd=self._folder, **self._user)
        settings = ["fsync=off", "full_page_writes=off", f"port={self.port}", f"unix_socket_directories={self._folder}"]
        options = [part for setting in settings for part in ("-c", setting)]
        self._log = (self._folder / "log").open("wb")
        self._process = subprocess.Popen(
            [_find("postgres"), "-D", data, *options],
            stdout=self._log,
            stderr=self._log,
            cwd=self._folder,
            **self._user,
        )
        wait_until(self._answers, what="PostgreSQL")
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, name: str) -> str:
        return f"postgresql+psycopg://postgres@127.0.0.1:{self.port}/{name}"

    def create(self, name: str) -> str:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)

    def wipe(self, name: str) -> None:
        """Empty every table but the schema's revision, and cut off whoever is still connected."""
        with psycopg.connect(self._dsn.replace("dbname=postgres", f"dbname={name}")) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            found = connection.execute(
                "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
                " WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
            ).fetchone()
            assert found is not None
            connection.execute(f"TRUNCATE {found[0]} RESTART IDENTITY CASCADE".encode())

    @property
    def _dsn(self) -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"

    def _answers(self) -> bool:
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self._dsn):
            return True
        return False


class RedisServer:
    """A throw-away server without persistence."""

    def __enter__(self) -> Self:
        self.port = free_port()
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.kill()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [_find("redis-server"), "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="Redis")

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def wipe(self) -> None:
        with redis.Redis(port=self.port) as client:
            client.flushall()

    def length(self, queue: str) -> int:
        with redis.Redis(port=self.port) as client:
            return int(client.llen(queue))

    def _answers(self) -> bool:
        with contextlib.suppress(redis.ConnectionError), redis.Redis(port=self.port) as client:
            return bool(client.ping())
        return False
