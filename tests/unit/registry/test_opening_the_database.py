"""Opening the registry: the embedded default migrates itself, a server never does, and failures name their remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from support.real_services import PostgresServer, free_port
from support.refusals import refused

import migrations
from onboard.errors import InputError
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.database import Database
from onboard.registry.leases import LeaseRepository
from onboard.registry.schema import check, open_database, upgrade
from onboard.registry.tables import QueueRow
from onboard.registry.workers import QueueRepository
from onboard.settings import Settings


@pytest.fixture(autouse=True)
def _new_homes_are_copied() -> None:
    """Here each is migrated by itself."""


def test_an_empty_home_becomes_a_migrated_database_in_wal_mode(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    database = open_database(Settings(home=home))
    check(database.url)
    with database.read() as session:
        assert session.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert session.execute(text("PRAGMA foreign_keys")).scalar() == 1
    assert home.stat().st_mode & 0o077 == 0
    database.dispose()


def test_many_first_openings_at_once_migrate_once(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    together = threading.Barrier(6)

    def open_it() -> int:
        together.wait()
        database = open_database(settings)
        with database.read() as session:
            queues = len(QueueRepository(session).list())
        database.dispose()
        return queues

    with ThreadPoolExecutor(6) as pool:
        assert [future.result() for future in [pool.submit(open_it) for _ in range(6)]] == [1] * 6


@pytest.mark.parametrize("home", ["/sys/onboard", "/dev/null/onboard"])
def test_a_home_that_cannot_be_written_names_the_remedy(home: str) -> None:
    with refused("home-not-writable"):
        open_database(Settings(home=Path(home)))


def test_a_read_only_home_names_the_remedy() -> None:
    me = os.geteuid()
    try:
        if me == 0:
            os.seteuid(65534)  # root may write everywhere
        with refused("home-not-writable", home="/usr", reason="this user may not read and write there"):
            open_database(Settings(home=Path("/usr")))
    finally:
        os.seteuid(me)


def test_a_database_that_is_not_up_to_date_names_the_command(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/grown.db"
    with refused("schema-missing"):
        open_database(Settings(home=tmp_path, database_url=url))
    upgrade(url)
    upgrade(url)
    open_database(Settings(home=tmp_path, database_url=url)).dispose()


def test_a_schema_of_a_newer_program_is_refused(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    database = open_database(settings)
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '29990101a'"))
        session.execute(text("UPDATE schema_compatibility SET oldest_code = '29990101a'"))
    with refused("schema-too-new"):
        check(database.url)
    with refused("schema-too-new"):
        open_database(settings)
    database.dispose()


def test_an_older_schema_of_the_embedded_default_is_upgraded_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path)
    open_database(settings).dispose()
    upgraded: list[str] = []
    monkeypatch.setattr(migrations, "HEAD", "later")
    monkeypatch.setattr("onboard.registry.schema.upgrade", upgraded.append)
    database = open_database(settings)
    assert upgraded == [database.url]
    with refused("schema-outdated"):
        check(database.url)


def test_an_unreachable_server_is_said_without_the_password() -> None:
    url = f"postgresql://me:secret@127.0.0.1:{free_port()}/x"
    with refused("database-unreachable-at") as caught:
        open_database(Settings(database_url=url))
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("url", ["mysql://me:secret@host/x", "nonsense"])
def test_another_kind_of_database_is_refused_without_the_password(url: str) -> None:
    with pytest.raises(InputError) as caught:
        Database(url)
    assert "secret" not in caught.value.message


def test_an_exception_rolls_everything_back(database: Database) -> None:
    def fail_late() -> None:
        with database.write() as session:
            QueueRepository(session).set_paused("gpu", True)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_late()
    with database.read() as session:
        assert "gpu" not in QueueRepository(session).paused()


def test_a_full_disk_of_sqlite_is_told_as_that_and_nothing_is_half_written(sqlite_url: str) -> None:
    database = Database(sqlite_url)

    def write_much() -> None:
        with database.write() as session:
            session.execute(text("PRAGMA max_page_count = 1"))  # no page more than it has
            for number in range(2000):
                QueueRepository(session).set_paused(f"queue-{number}-{'x' * 50}", True)

    with refused("database-disk-full-at"):
        write_much()
    with database.read() as session:
        assert session.query(QueueRow).count() == 0
    database.dispose()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("free", [0, 4, 20, 40, 200])
def test_a_full_disk_under_a_fresh_home_is_told(small_disk: Path, free: int) -> None:
    (small_disk / "much").write_bytes(bytes((1024 - free) << 10))
    with refused("database-disk-full-at"):
        open_database(Settings(home=small_disk / "home"))


def test_a_disk_that_is_full_when_the_database_is_opened_is_told_as_that(small_disk: Path) -> None:
    settings = Settings(home=small_disk / "home")
    open_database(settings).dispose()
    (small_disk / "much").write_bytes(bytes(shutil.disk_usage(small_disk).free))  # SQLite: "disk I/O error"
    with refused("database-disk-full-at"):
        open_database(settings)


def _broken_header(content: bytearray) -> None:
    content[:16] = b"x" * 16


def _broken_pages(content: bytearray) -> None:
    for start in range(4096, len(content), 4096):
        content[start : start + 200] = b"\xff" * 200


def _cut_short(content: bytearray) -> None:
    del content[20_000:]


def _another_file(content: bytearray) -> None:
    content[:] = b"This is a note that somebody wrote into the wrong file."


@pytest.mark.parametrize("harm", [_broken_header, _broken_pages, _cut_short, _another_file])
def test_a_damaged_database_is_told_with_what_to_do(tmp_path: Path, harm: Callable[[bytearray], None]) -> None:
    settings = Settings(home=tmp_path)
    open_database(settings).dispose()
    file = tmp_path / "onboard.db"
    content = bytearray(file.read_bytes())
    harm(content)
    file.write_bytes(content)
    with refused("sqlite-damaged") as caught:
        open_database(settings)
    assert str(tmp_path) not in caught.value.outside.message


def test_a_row_that_a_constraint_forbids_is_no_failure_of_the_database(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write() as session:
        session.execute(text("INSERT INTO queues (name, paused) VALUES ('twice', NULL)"))


@pytest.mark.services
def test_what_a_user_of_postgresql_may_not_do_names_the_remedy(postgres_database: Database) -> None:
    def look_as_a_guest() -> None:
        with postgres_database.write() as session:
            session.execute(text("CREATE ROLE guest"))
            session.execute(text("SET LOCAL ROLE guest"))
            session.execute(text("SELECT * FROM queues"))

    with refused("database-right-missing") as caught:
        look_as_a_guest()
    assert caught.value.outside.message == "The database cannot be reached."


@pytest.mark.services
def test_a_postgresql_that_takes_no_changes_is_told(postgres_database: Database) -> None:
    refusal = refused("database-read-only")
    with refusal as caught, postgres_database.write() as session:
        session.execute(text("SET TRANSACTION READ ONLY"))
        QueueRepository(session).set_paused("gpu", True)
    assert "to the primary" in caught.value.remedy


@pytest.mark.services
def test_a_replica_of_postgresql_is_not_read_it_lags_behind() -> None:
    with PostgresServer() as server, Database(server.create("onboard")) as database:
        server.stop()
        (server._data / "standby.signal").touch()
        server.start()
        with refused("database-read-only") as caught, database.read() as session:
            session.execute(text("SELECT 1"))
    assert "to the primary" in caught.value.remedy


def test_when_every_connection_is_busy_that_is_told_as_something_that_passes(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    database.engine.pool._timeout = 0.01  # type: ignore[attr-defined]  # of the pool that files have

    def read() -> object:
        with database.read() as session:
            return session.scalar(text("SELECT 1"))

    with ExitStack() as stack:
        for _ in range(15):  # as many as there are
            stack.enter_context(database.read()).execute(text("SELECT 1"))
        with refused("database-busy") as caught:
            read()
    assert caught.value.retryable
    assert read() == 1
    database.dispose()


def test_a_glance_sees_what_was_committed_and_leaves_its_connection_fit_for_transactions(database: Database) -> None:
    def undone() -> None:
        with database.write() as session:
            QueueRepository(session).set_paused("cpu", True)
            raise ZeroDivisionError

    for paused in (True, False):
        with database.write() as session:
            QueueRepository(session).set_paused("gpu", paused)
        with database.glance() as session:
            assert ("gpu" in QueueRepository(session).paused()) is paused
        with pytest.raises(ZeroDivisionError):
            undone()
        with database.glance() as session:
            assert "cpu" not in QueueRepository(session).paused()


def test_a_light_write_is_committed_and_the_next_one_waits_for_the_disk_again(postgres_database: Database) -> None:
    with postgres_database.write_lightly() as session:
        assert session.scalar(text("SHOW synchronous_commit")) == "off"
        LeaseRepository(session).take("light", "w1", 60)
    with postgres_database.write() as session:
        assert session.scalar(text("SHOW synchronous_commit")) == "on"
        assert LeaseRepository(session).holder("light") == "w1"


def test_a_light_write_is_rolled_back_by_an_exception(database: Database) -> None:
    def undone() -> None:
        with database.write_lightly() as session:
            LeaseRepository(session).take("light", "w1", 60)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        undone()
    with database.read() as session:
        assert LeaseRepository(session).holder("light") is None


@pytest.mark.services
def test_a_full_disk_of_postgresql_is_told_as_that(postgres_url: str) -> None:
    database = Database(postgres_url)
    said_by_the_server = "DO $$BEGIN RAISE 'could not extend file' USING ERRCODE = 'disk_full'; END$$"
    refusal = refused("database-server-disk-full", reason="could not extend file")
    with refusal, database.write() as session:
        session.execute(text(said_by_the_server))
    database.dispose()


@pytest.mark.services
def test_the_locks_of_a_collection_outlive_a_store_that_deletes_slowly(postgres_url: str) -> None:
    database = Database(postgres_url)
    with database.write() as session:
        ArtifactRepository(session).collect(3600.0, 10)
        assert session.execute(text("SHOW idle_in_transaction_session_timeout")).scalar() == "15min"
    with database.write() as session:
        assert session.execute(text("SHOW idle_in_transaction_session_timeout")).scalar() == "30s"
    database.dispose()


def test_a_reader_sees_the_state_of_its_beginning_while_another_writes(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    with database.read() as reader:
        assert "gpu" not in QueueRepository(reader).paused()
        with database.write() as writer:
            QueueRepository(writer).set_paused("gpu", True)
        assert "gpu" not in QueueRepository(reader).paused()
    with database.read() as reader:
        assert "gpu" in QueueRepository(reader).paused()
    database.dispose()


def test_concurrent_writers_lose_no_update(database: Database) -> None:
    """Read, add one, write: the pattern of which SQLite's default transactions lose most."""
    with database.write() as session:
        session.add(QueueRow(name="counter", paused=False, updated_at=0.0))

    def add_ones() -> None:
        for _ in range(25):
            with database.write() as session:
                row = session.get_one(QueueRow, "counter", with_for_update=True)
                row.updated_at += 1

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(add_ones) for _ in range(4)]:
            future.result()
    with database.read() as session:
        assert session.get_one(QueueRow, "counter").updated_at == 100
