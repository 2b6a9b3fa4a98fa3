"""Fixtures for every test: no environment of the machine, real PostgreSQL and Redis on free ports."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import make_url
from support.environment import forget_settings
from support.order import places_of
from support.real_services import PostgresServer, RedisServer, missing

import migrations
from onboard.registry.database import Database
from onboard.registry.schema import upgrade
from onboard.registry.services import Services, open_services
from onboard.settings import Settings

if TYPE_CHECKING:
    from support.command_line import CommandLine
    from support.real_s3 import S3Server

    from onboard.bases import Base
    from onboard.model.engine import Engine


def pytest_configure() -> None:
    """Ctrl-C works in the programs that tests start, also where a shell runs the tests themselves in the background.

    Of several processes that run tests at once, each computes on one core. Nothing is garbage before the tests run.
    """
    gc.disable()
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """See `support.order`; a single process keeps the order of the folders."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        places = places_of(item.path for item in items)
        items.sort(key=lambda item: places[item.path])


def pytest_collection_finish() -> None:
    """Leave the libraries and the tests out of every garbage collection, which took a sixth of the time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """None of the settings of whoever runs the tests; a home that is nobody's."""
    forget_settings(monkeypatch, tmp_path)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test run."""
    _need(missing("postgres"))
    with PostgresServer() as server:
        yield server


@pytest.fixture(scope="session")
def _postgres_migrated(postgres: PostgresServer) -> str:
    url = postgres.create("onboard")
    upgrade(url)
    return url


@pytest.fixture
def postgres_url(postgres: PostgresServer, _postgres_migrated: str) -> str:
    """The URL of an empty, migrated PostgreSQL database."""
    postgres.wipe("onboard")
    return _postgres_migrated


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """A Redis server of this test run."""
    _need(missing("redis-server"))
    with RedisServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """The URL of an empty Redis database."""
    redis_server.wipe()
    return redis_server.url


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """An S3-compatible server of this test run."""
    from support.real_s3 import S3Server

    with S3Server() as server:
        yield server


@pytest.fixture
def s3_url(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a place in an empty bucket; endpoint and credentials stand in the environment, as users have them."""
    from s3fs import S3FileSystem

    s3_server.wipe()
    s3_server.client().create_bucket(Bucket="onboard")
    for name, value in s3_server.credentials.environment.items():
        monkeypatch.setenv(name, value)
    S3FileSystem.clear_instance_cache()  # fsspec keeps one for ever; each test has its own server state
    yield "s3://onboard/artifacts"
    S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="session")
def _sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    upgrade(f"sqlite:///{path}")
    return path


@pytest.fixture(autouse=True)
def _new_homes_are_copied(_sqlite_template: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new home of this process gets a copy of a migrated database: migrating each takes a quarter of a second.

    A file that tests this first opening overrides the fixture.
    """

    def copied_or_upgraded(url: str) -> str:
        path = Path(make_url(url).database or "")
        if not url.startswith("sqlite:") or path.exists():
            return upgrade(url)
        path.touch(0o600)
        path.write_bytes(_sqlite_template.read_bytes())
        return migrations.HEAD

    monkeypatch.setattr("onboard.registry.schema.upgrade", copied_or_upgraded)


@pytest.fixture
def sqlite_url(_sqlite_template: Path, tmp_path: Path) -> str:
    """The URL of a fresh, migrated SQLite database."""
    path = tmp_path / "onboard.db"
    path.write_bytes(_sqlite_template.read_bytes())
    return f"sqlite:///{path}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A fresh, migrated database of either kind."""
    fixture = {"sqlite": "sqlite_url", "postgresql": "postgres_url"}[request.param]
    database = Database(request.getfixturevalue(fixture))
    yield database
    database.dispose()


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    """A fresh, migrated database of a PostgreSQL server."""
    database = Database(postgres_url)
    yield database
    database.dispose()


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """The embedded default in a fresh home."""
    services = open_services(Settings(home=tmp_path / "home"))
    yield services
    services.close()


@pytest.fixture
def service(database: Database, tmp_path: Path) -> Services:
    """A service on a fresh database of either kind, with a registered base."""
    from support.old_and_needless import service_on

    return service_on(database, tmp_path / "home")


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The program in this process."""
    from support.command_line import CommandLine

    return CommandLine(monkeypatch, capsys)


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A base with random weights; torch is imported by the first test that asks for it."""
    from support.tiny_base import make_tiny_base

    return make_tiny_base(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def other_base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    """A second base of the same shape with other weights."""
    from support.tiny_base import make_tiny_base

    return make_tiny_base(tmp_path_factory.mktemp("other"), seed=1)


@pytest.fixture(scope="session")
def fingerprinted_base(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base) -> Base:
    """The tiny base with fingerprints, and 21 anchors instead of one."""
    from support.tiny_base import with_fingerprints

    return with_fingerprints(tiny_base, tmp_path_factory.mktemp("fingerprinted") / "base")


@pytest.fixture(scope="session")
def tiny_engine(tiny_base: Base) -> Engine:
    """The tiny base as a model, shared by the whole run: nobody may change its weights."""
    from onboard.bases.load import load_engine

    return load_engine(tiny_base, "cpu")


@pytest.fixture(scope="session")
def _tiny_home(tmp_path_factory: pytest.TempPathFactory, tiny_base: Base, _sqlite_template: Path) -> Path:
    """A home in which the tiny base is registered, once for the whole run."""
    from onboard.hypernetworks.register import register_base

    home = tmp_path_factory.mktemp("tiny-home") / "home"
    home.mkdir()
    (home / "onboard.db").write_bytes(_sqlite_template.read_bytes())
    with pytest.MonkeyPatch.context() as monkeypatch:
        forget_settings(monkeypatch, home.parent)
        with closing(open_services(Settings(home=home, base=str(tiny_base.folder), device="cpu"))) as services:
            register_base(services, tiny_base)
    return home


@pytest.fixture
def tiny_services(tmp_path: Path, tiny_base: Base, _tiny_home: Path) -> Iterator[Services]:
    """A fresh home on the tiny base, its source tasks registered."""
    home = shutil.copytree(_tiny_home, tmp_path / "home")
    services = open_services(Settings(home=home, base=str(tiny_base.folder), device="cpu"))
    yield services
    services.close()


def _need(absent: str | None) -> None:
    """A missing service skips on a laptop and fails in CI."""
    if absent is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{absent} is not installed, and CI=true")
    pytest.skip(f"{absent} is not installed (apt-get install postgresql redis-server)")
