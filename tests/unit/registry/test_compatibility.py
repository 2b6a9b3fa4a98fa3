"""A schema of a later release: what this one still does on it, and what it leaves to the later one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from support.later_release import LATER, make_later
from support.real_services import PostgresServer, wait_until
from support.refusals import refused
from support.registry_samples import sample_spec

import migrations
from onboard.api.app import create_app
from onboard.errors import DeadlockError
from onboard.operations.backup.make import back_up
from onboard.operations.gc import collect_garbage
from onboard.registry import schema
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.settings import Settings
from onboard.versions.delete import delete_task
from workers.faults import TroubleError
from workers.shell import work

EXPAND, CONTRACT = 'kind = "expand"', 'kind = "contract"'


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Services]:
    """A home of this release."""
    with closing(open_services(Settings(home=tmp_path / "home"))) as services:
        yield services


def test_a_schema_to_which_a_later_release_only_added_is_accepted(home: Services, tmp_path: Path) -> None:
    make_later(home.database.url, tmp_path / "later", EXPAND)
    assert schema.check(home.database.url) == LATER
    with closing(open_services(home.settings)) as again, again.database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())
        assert JobRepository(session).get(job.id) == job
    schema.require_still_fitting(home.database)
    assert not schema.is_current(home.database)


def test_a_schema_from_which_a_later_release_took_something_away_is_refused(home: Services, tmp_path: Path) -> None:
    make_later(home.database.url, tmp_path / "later", CONTRACT)
    for opens in (
        lambda: schema.check(home.database.url),
        lambda: schema.upgrade(home.database.url),
        lambda: open_services(home.settings),
        lambda: schema.require_still_fitting(home.database),
    ):
        with refused("schema-too-new", found=LATER, wanted=migrations.HEAD):
            opens()


def test_a_schema_is_accepted_if_its_oldest_code_is_not_younger_than_this_one(home: Services, tmp_path: Path) -> None:
    make_later(home.database.url, tmp_path / "later", f'{CONTRACT}\noldest_code = "{migrations.HEAD}"')
    assert schema.check(home.database.url) == LATER


@pytest.mark.parametrize("lost", ["DELETE FROM schema_compatibility", "DROP TABLE schema_compatibility"])
def test_a_newer_schema_without_a_record_is_refused(home: Services, tmp_path: Path, lost: str) -> None:
    make_later(home.database.url, tmp_path / "later", EXPAND)
    with home.database.write() as session:
        session.execute(text(lost))
    with refused("schema-too-new"):
        schema.check(home.database.url)


def test_the_upgrade_of_an_earlier_release_leaves_a_newer_schema_as_it_is(home: Services, tmp_path: Path) -> None:
    make_later(home.database.url, tmp_path / "later", EXPAND)
    assert schema.upgrade(home.database.url) == LATER
    assert schema.revision_of(home.database.url) == LATER


@pytest.mark.parametrize("maintain", [
    lambda services, folder: collect_garbage(services),
    lambda services, folder: back_up(services, str(folder / "backup"), lambda _line: None),
    lambda services, folder: delete_task(services, "mood"),
])  # fmt: skip
def test_what_has_to_know_every_table_is_left_to_the_later_release(
    home: Services, tmp_path: Path, maintain: Callable[[Services, Path], object]
) -> None:
    make_later(home.database.url, tmp_path / "later", EXPAND)
    with refused("schema-ahead", found=LATER, wanted=migrations.HEAD):
        maintain(home, tmp_path)


def test_a_worker_claims_while_the_schema_fits_and_nothing_after_that(home: Services, tmp_path: Path) -> None:
    ran: list[str] = []
    with home.database.write() as session:
        first, second = (JobRepository(session).add(sample_spec(number=number))[0] for number in range(2))
    make_later(home.database.url, tmp_path / "later", EXPAND)
    work(home, "w1", ["default"], lambda job, *_: ran.append(job.id))
    record_later_code(home.database)
    with pytest.raises(TroubleError) as caught:
        work(home, "w1", ["default"], lambda job, *_: ran.append(job.id))
    assert caught.value.trouble.stops
    assert LATER in caught.value.trouble.message
    assert ran == [first.id]
    with home.database.read() as session:
        assert JobRepository(session).get(second.id).attempt == 0


def record_later_code(database: Database) -> None:
    """As a migration does that takes something away."""
    with database.write() as session:
        session.execute(text(f"UPDATE schema_compatibility SET oldest_code = '{LATER}'"))


def test_a_job_that_fails_because_the_schema_changed_meanwhile_returns_to_the_queue(
    home: Services, tmp_path: Path
) -> None:
    with home.database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())

    def fail(*_: object) -> None:
        make_later(home.database.url, tmp_path / "later", CONTRACT)
        raise KeyError("a column that is gone")

    with pytest.raises(TroubleError):
        work(home, "w1", ["default"], fail)
    with home.database.read() as session:
        after = JobRepository(session).get(job.id)
    assert (after.state.value, after.attempt, after.max_attempts) == ("queued", 1, 4)


def test_the_api_is_ready_while_the_schema_fits(home: Services, tmp_path: Path) -> None:
    with TestClient(create_app(home.settings), base_url="http://localhost") as client:
        make_later(home.database.url, tmp_path / "later", EXPAND)
        assert client.get("/readyz").status_code == 200
        record_later_code(home.database)
        refusal = client.get("/readyz")
        assert (refusal.status_code, refusal.json()["found"]) == (503, LATER)


def test_the_api_answers_nothing_on_a_schema_that_does_not_fit_any_more(
    home: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.api.schema_watch.LOOK_SECONDS", 0.05)
    with TestClient(create_app(home.settings), base_url="http://localhost") as client:
        make_later(home.database.url, tmp_path / "later", EXPAND)
        wait_until(lambda: client.get("/v1/jobs").status_code == 401)
        record_later_code(home.database)
        wait_until(lambda: client.get("/v1/jobs").status_code == 503)
        assert client.get("/v1/jobs").json()["found"] == LATER
        assert [client.get(path).status_code for path in ("/", "/readyz", "/healthz")] == [503, 503, 200]


@pytest.mark.services
def test_an_upgrade_waits_for_a_busy_table_without_holding_up_others(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.create("busy_while_upgraded")
    schema.upgrade(url)
    with schema.migrating(url) as migration:
        migration.downgrade("20261129l")  # the next one adds columns to `sessions`
    monkeypatch.setattr(schema, "_LOCK_SECONDS", 1)
    monkeypatch.setattr(schema, "_PAUSE_SECONDS", 0.2)
    attempts: list[str] = []
    upgraded = schema._upgraded

    def counted(url: str) -> str:
        attempts.append(url)
        return upgraded(url)

    monkeypatch.setattr(schema, "_upgraded", counted)
    with Database(url) as database, database.read() as busy:
        busy.execute(text("SELECT count(*) FROM sessions"))
        thread = threading.Thread(target=schema.upgrade, args=[url])
        thread.start()
        wait_until(lambda: len(attempts) > 1, what="the second attempt")
        with database.read() as other:
            other.execute(text("SET LOCAL statement_timeout = '20s'"))
            other.execute(text("SELECT count(*) FROM sessions"))
        busy.rollback()
        thread.join(60)
    assert schema.check(url) == migrations.HEAD


@pytest.mark.services
def test_a_lock_that_is_not_available_in_time_is_an_error_that_passes(postgres_database: Database) -> None:
    def wait_in_vain() -> None:
        with postgres_database.write() as session:
            session.execute(text("SET LOCAL lock_timeout = '10ms'"))
            session.execute(text("LOCK TABLE queues IN ACCESS EXCLUSIVE MODE"))

    with postgres_database.read() as session:
        session.execute(text("SELECT count(*) FROM queues"))
        with pytest.raises(DeadlockError) as caught:
            wait_in_vain()
    assert caught.value.type == "database-locked"
    assert caught.value.retryable
