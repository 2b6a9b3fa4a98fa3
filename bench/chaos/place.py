"""Where a run takes place: its settings, its servers, and the disk that its artifacts lie on."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bench.chaos.proxy import Proxy
from bench.harness.services import PostgresServer, RedisServer, missing
from onboard.registry.schema import upgrade
from onboard.settings import Settings

PlaceName = Literal["sqlite", "postgres"]
PLACES: Final[tuple[PlaceName, ...]] = ("sqlite", "postgres")
DATABASE: Final = "chaos"
_DISK_BYTES: Final = 64 * 2**20


@dataclass(frozen=True)
class Servers:
    """The services of the full size, with a proxy before PostgreSQL."""

    postgres: PostgresServer
    redis: RedisServer
    proxy: Proxy


@dataclass(frozen=True)
class SmallDisk:
    """A separate file system for the artifacts, which can be filled up."""

    folder: Path

    @property
    def _filler(self) -> Path:
        return self.folder / "filler"

    def fill(self) -> None:
        """Leave no byte free."""
        with self._filler.open("wb", buffering=0) as file:
            for size in (2**20, 4096, 1):
                _write_until_full(file.fileno(), size)

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)


@dataclass(frozen=True)
class Deployment:
    """One deployment.

    Args:
        settings: what workers and submitters are given; PostgreSQL is reached through the proxy.
        direct: the same without the proxy, for whoever watches and checks.
        disk: what the artifacts lie on; None where no small disk can be mounted.
        servers: None on the embedded default.
    """

    name: PlaceName
    settings: Settings
    direct: Settings
    disk: SmallDisk | None
    servers: Servers | None


def absent(name: PlaceName) -> str | None:
    """The program that this place lacks on this machine, or None."""
    return (missing("postgres") or missing("redis-server")) if name == "postgres" else None


@contextmanager
def open_place(name: PlaceName, folder: Path, base: Path) -> Iterator[Deployment]:
    """A fresh deployment under `folder`, on the base in `base`; everything that was started ends with it."""
    with ExitStack() as stack:
        disk = stack.enter_context(_small_disk(folder / "disk"))
        artifacts = str(disk.folder / "artifacts") if disk else str(folder / "artifacts")
        shared = Settings(home=folder / "home", base=str(base), device="cpu", artifact_url=artifacts)
        if name == "sqlite":
            yield Deployment(name, shared, shared, disk, None)
            return
        postgres = stack.enter_context(PostgresServer())
        redis = stack.enter_context(RedisServer())
        proxy = stack.enter_context(Proxy(postgres.port))
        upgrade(postgres.create(DATABASE))
        yield Deployment(
            name,
            _grown(shared, postgres.url(DATABASE, proxy.port), redis.url),
            _grown(shared, postgres.url(DATABASE), redis.url),
            disk,
            Servers(postgres, redis, proxy),
        )


def _grown(shared: Settings, database: str, broker: str) -> Settings:
    return shared.model_copy(update={"database_url": database, "broker_url": broker})


@contextmanager
def _small_disk(folder: Path) -> Iterator[SmallDisk | None]:
    """A tmpfs on `folder`; None for whoever may not mount one."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        yield None
        return
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _write_until_full(file: int, size: int) -> None:
    with contextlib.suppress(OSError):
        while os.write(file, b"\0" * size):
            pass
