"""Homes with odd names, and URLs of database and broker: understood, or refused without quoting the password."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text
from support.command_line import CommandLine
from support.real_services import PostgresServer
from support.refusals import refused

from onboard.broker.app import make_app
from onboard.broker.doorbell import CeleryDoorbell
from onboard.broker.url import require_broker_url
from onboard.domain.task import Task
from onboard.errors import InputError
from onboard.registry.database import Database
from onboard.registry.schema import open_database
from onboard.registry.services import open_services
from onboard.registry.tasks import TaskRepository
from onboard.settings import Settings

SECRET = "hunter2"


def tasks(settings: Settings) -> list[str]:
    with closing(open_services(settings)) as services, services.database.read() as session:
        return [task.name for task in TaskRepository(session).list()]


def test_homes_are_two_whatever_letters_tell_them_apart(tmp_path: Path) -> None:
    names = ["a", "a?b", "a?c", "a#b", "a%41b", "aAb", "a%2Fb", "a b", "a::b", "a[b]", "a&mode=memory", "ä+"]
    for name in names:
        settings = Settings(home=tmp_path / name)
        assert tasks(settings) == [], name
        with closing(open_services(settings)) as services:
            with services.database.write() as session:
                TaskRepository(session).put(Task("t", "classification", ("a", "b"), ("a", "b")))
            assert services.artifacts.get(services.store(b"x", "probe")) == b"x"
        CeleryDoorbell(settings).ring("default")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    for name in names:
        assert {path.name for path in (tmp_path / name).iterdir()} >= {"onboard.db", "artifacts", "broker"}


@pytest.mark.parametrize("empty", ["", " "])
def test_an_empty_home_is_the_default_and_not_the_present_folder(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ONBOARD_HOME", empty)
    monkeypatch.setenv("ONBOARD_DEVICE", "")
    assert (Settings().resolved_home, Settings().device) == (tmp_path / ".onboard", "auto")


@pytest.mark.parametrize(
    "url",
    [
        f"redis://:p@{SECRET}/w@host/0", f"redis://:p/{SECRET}@host/0", f"redis://:p#{SECRET}@host/0",
        f"redis://:p?{SECRET}@host/0", f"redis://u:{SECRET}%@host/0", f"redis://:p@{SECRET}@host/0",
        f"sentinel://:{SECRET}@host:26379/0", f"memory://:{SECRET}@", f"amqp://me:{SECRET}@host//",
        SECRET, f"{SECRET}@host",
        f"redis://:{SECRET}@host/notanumber", f"redis://:{SECRET}@host:port/0", f"redis://:{SECRET}@host:0/0",
        f"redis://:{SECRET}@host:99999/0", f"redis://:{SECRET}@/0",
        f"redis://:{SECRET}@host/0?health_check_interval=30",
        f"rediss://:{SECRET}@host/0?ssl_cert_reqs=bogus", f"redis://:{SECRET}@host/0?ssl_cert_reqs=none",
        f"rediss://:{SECRET}@host/0?ssl_ca_certs=/nowhere/ca.pem", f"redis://:{SECRET}@host/0?socket_timeout=x",
        f"rediss://:{SECRET}@host/0?ssl_ca_certs={__file__}", f"redis://:{SECRET}@a,b/0", f"redis://:{SECRET}@host/0#x",
        f"filesystem:///tmp/{SECRET}",
    ],
)  # fmt: skip
def test_a_broker_that_cannot_be_used_is_refused_in_our_words_without_its_password(url: str, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url="postgresql://db/onboard", broker_url=url)
    for refuse in (lambda: make_app(settings), lambda: CeleryDoorbell(settings).ring("default")):
        with pytest.raises(InputError) as caught:
            refuse()
        assert caught.value.type.startswith("broker-url-")
        assert SECRET not in caught.value.message + caught.value.remedy + json.dumps(caught.value.data)
        assert caught.value.remedy
        assert caught.value.__cause__ is None or SECRET not in str(caught.value.__cause__)


@pytest.mark.parametrize(
    "url",
    [
        "filesystem://", "redis://localhost", "redis://cache:6379/0", "redis://:p%40ss%2Fw@cache/15",
        "rediss://onboard:secret@cache.example.com:6380/0?ssl_cert_reqs=required&ssl_check_hostname=true",
        "redis://[::1]:6379/0", "redis://my_cache/", "redis://user@10.0.0.7/2",
    ],
)  # fmt: skip
def test_a_broker_that_can_be_used_is_not_refused(url: str) -> None:
    require_broker_url(url)


@pytest.mark.parametrize(
    ("query", "remedy"),
    [("pgbouncer=true", "PREPARED_STATEMENTS=false"), ("prepare_threshold=0", "PREPARED_STATEMENTS=false"),
     ("pool_size=5", "PREPARED_STATEMENTS=false"), ("nonsense=1", "Remove it"),
     ("sslmode=require&schema=public", "Remove it")],
)  # fmt: skip
def test_a_parameter_that_the_driver_does_not_know_is_named(query: str, remedy: str) -> None:
    type_ = "database-url-parameter-of-pooler" if "PREPARED" in remedy else "database-url-parameter"
    with refused(type_) as caught:
        Database(f"postgresql://me:{SECRET}@host/onboard?{query}")
    assert remedy in caught.value.remedy
    assert SECRET not in caught.value.message


@pytest.mark.parametrize(
    "url",
    [f"postgresql://u:p@ss/{SECRET}@host/db", f"postgresql://u:p@{SECRET}/w@host/db", SECRET, f"{SECRET}@host/db",
     f"postgresql://u:{SECRET}@host:port/db", f"mysql://u:{SECRET}@host/db"],
)  # fmt: skip
def test_a_database_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InputError) as caught:
        Database(url)
    assert SECRET not in caught.value.message + caught.value.remedy
    assert caught.value.__cause__ is None
    assert "ONBOARD_DATABASE_URL" in caught.value.message + caught.value.remedy


def test_doctor_goes_on_whatever_one_check_meets(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    from cli import local_doctor

    def stumble(settings: Settings) -> str:
        raise TypeError(f"cannot read redis://:{SECRET}@host/0")

    monkeypatch.setattr(local_doctor, "CHECKS", {"broker": stumble, "home": lambda settings: "fine"})
    said = command_line("doctor", "--json")
    checks = said.document["checks"]
    assert [(check["what"], check["ok"]) for check in checks] == [("broker", False), ("home", True)]
    assert said.code == 1
    assert SECRET not in said.out


@pytest.mark.services
def test_without_prepared_statements_nothing_stays_in_a_session(postgres_url: str) -> None:
    url = postgres_url.replace("postgresql+psycopg://", "postgresql://")
    settings = Settings(database_url=url, broker_url="redis://localhost", database_prepared_statements=False)
    with open_database(settings) as database:
        for _ in range(2):
            with database.write() as session:
                driver = session.connection().connection.driver_connection
                assert driver is not None
                assert driver.prepare_threshold is None
                limit = "SHOW idle_in_transaction_session_timeout"
                assert session.scalar(text(limit)) == "30s"
        with database.glance() as session:
            assert session.scalar(text(limit)) == "0", "it was for the transaction alone"
        assert not database.has_pooler()


@pytest.mark.services
def test_a_pooler_that_loses_prepared_statements_is_named_with_the_setting_that_helps(postgres_url: str) -> None:
    with (
        Database(postgres_url) as database,
        refused("database-pooler-statements"),
        database.read() as session,
    ):
        session.execute(text("EXECUTE gone"))


@pytest.mark.services
def test_a_database_in_another_encoding_is_refused(postgres: PostgresServer, postgres_url: str) -> None:
    with Database(postgres_url) as database, database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(
            text("CREATE DATABASE bytes ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
        )
    url = postgres_url.rpartition("/")[0] + "/bytes"
    with (
        Database(url) as database,
        refused("database-encoding-wrong"),
        database.read() as session,
    ):
        session.execute(text("SELECT 1"))
