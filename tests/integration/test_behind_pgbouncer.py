"""Onboard on PostgreSQL behind a real PgBouncer."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.deployed import Command
from support.pgbouncer import PgBouncer
from support.program import Place
from support.real_jobs import opinions
from support.real_services import missing
from support.refusals import refused
from support.registry_samples import add_job, register_sample_base

from onboard.bases import Base
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.schema import open_database
from onboard.settings import Settings

pytestmark = [
    pytest.mark.services,
    pytest.mark.skipif(
        missing("pgbouncer") is not None, reason="pgbouncer is not installed (apt-get install pgbouncer)"
    ),
]
CONNECTIONS, CLIENTS, JOBS = 3, 12, 60


@pytest.fixture
def pooled(postgres_url: str) -> Iterator[Database]:
    """The database through three connections that belong to nobody between two transactions."""
    with PgBouncer(postgres_url, connections=CONNECTIONS) as pooler:
        settings = Settings(database_url=pooler.url, broker_url="redis://localhost", database_prepared_statements=False)
        with open_database(settings) as database:
            yield database


def test_many_clients_share_few_connections_and_every_job_is_claimed_once(pooled: Database) -> None:
    register_sample_base(pooled)
    added = {add_job(pooled, f"task-{number}").id for number in range(JOBS)}

    def claim_all(name: str) -> list[str]:
        claimed: list[str] = []
        while True:
            with pooled.write() as session:
                job = ClaimRepository(session).claim(name, ["default"])
            if job is None:
                return claimed
            claimed.append(job.id)

    with ThreadPoolExecutor(CLIENTS) as pool:
        claimed = [job for jobs in pool.map(claim_all, (f"w{number}" for number in range(CLIENTS))) for job in jobs]
    assert sorted(claimed) == sorted(added)


def test_the_pooler_is_noticed_and_leaves_no_setting_in_its_sessions(pooled: Database) -> None:
    assert pooled.has_pooler()
    for _ in range(CONNECTIONS * 2):
        with pooled.write() as session:
            assert session.connection().exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "30s"
        with pooled.glance() as session:
            assert session.connection().exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar() == "0"


def test_prepared_statements_that_the_pooler_loses_are_reported_with_the_setting(postgres_url: str) -> None:
    with (
        PgBouncer(postgres_url, connections=CONNECTIONS) as pooler,
        Database(pooler.url) as database,
        ThreadPoolExecutor(CLIENTS) as pool,
        refused("database-pooler-statements"),
    ):
        register_sample_base(database)
        list(pool.map(lambda number: [add_job(database, f"t{number}") for _ in range(10)], range(CLIENTS)))


def test_a_pooler_in_statement_mode_is_refused_with_the_reason(postgres_url: str) -> None:
    with PgBouncer(postgres_url, "statement") as pooler:
        settings = Settings(database_url=pooler.url, broker_url="redis://localhost", database_prepared_statements=False)
        with refused("database-pooler-mode"), open_database(settings):
            pass


def test_a_job_runs_from_the_submission_to_a_prediction(
    tmp_path: Path, tiny_base: Base, postgres_url: str, redis_url: str
) -> None:
    with PgBouncer(postgres_url, connections=CONNECTIONS) as pooler:
        variables = {
            "ONBOARD_DATABASE_URL": pooler.url,
            "ONBOARD_DATABASE_PREPARED_STATEMENTS": "false",
            "ONBOARD_BROKER_URL": redis_url,
            "ONBOARD_ARTIFACT_URL": str(tmp_path / "artifacts"),
        }
        place = Place(tmp_path, tiny_base.folder, variables)
        place.folder.mkdir(exist_ok=True)
        with Command(["worker", "--name", "w1"], place.environment, place.folder) as worker:
            rows = place.write("mood.jsonl", opinions(24))
            document = place.json("submit", "--dataset", rows, "--fast", "--wait")
            assert (document["state"], document["version"]) == ("succeeded", 1)
            (prediction,) = place.json("predict", "mood", "--text", "the film was good")["predictions"]
            assert prediction["version"] == 1
            assert worker.stop() == 0
            assert "Traceback" not in worker.said()
