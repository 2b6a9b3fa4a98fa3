"""A real PgBouncer in front of a test's PostgreSQL: Debian's binary on a free port, also as root."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import psycopg

from support.real_services import free_port, wait_until


class PgBouncer:
    """A pooler that leads to one database server.

    Args:
        url: SQLAlchemy's URL of the database behind it.
        mode: `pool_mode`: session, transaction or statement.
        connections: how many connections to the server it opens at most.
    """

    def __init__(self, url: str, mode: str = "transaction", connections: int = 3) -> None:
        self._behind, self._mode, self._connections = url, mode, connections
        self.port = free_port()

    @property
    def url(self) -> str:
        """SQLAlchemy's URL of the database through the pooler."""
        return self._behind.replace(f":{self._behind_port}/", f":{self.port}/")

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="onboard-pgbouncer-"))
        users, settings = self._folder / "users.txt", self._folder / "pgbouncer.ini"
        users.write_text('"postgres" ""\n', encoding="utf-8")
        settings.write_text(self._settings(users), encoding="utf-8")
        user: dict[str, Any] = {}
        if os.geteuid() == 0:  # PgBouncer refuses root
            user = {"user": "nobody"}
            for path in (self._folder, users, settings):
                shutil.chown(path, "nobody")
        command = [shutil.which("pgbouncer") or "/usr/sbin/pgbouncer", str(settings)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._folder, **user
        )
        wait_until(self._answers, what="PgBouncer")
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _behind_port(self) -> int:
        return int(self._behind.rpartition(":")[2].partition("/")[0])

    def _settings(self, users: Path) -> str:
        return (
            f"[databases]\n* = host=127.0.0.1 port={self._behind_port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {users}\npool_mode = {self._mode}\n"
            f"default_pool_size = {self._connections}\nmax_client_conn = 200\n"
            "ignore_startup_parameters = extra_float_digits\n"
        )

    def _answers(self) -> bool:
        dsn = self.url.replace("postgresql+psycopg://", "postgresql://")
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("SELECT 1")
            return True
        return False
