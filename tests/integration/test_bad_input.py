"""Settings and wishes that cannot work, against the real services: each is told with what mends it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from support.command_line import CommandLine, Said
from support.real_jobs import opinions, write_rows
from support.real_services import PostgresServer, free_port, wait_until
from support.refusals import refused as error_of
from support.registry_samples import sample_spec

import migrations
from onboard.bases import Base
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import JobState
from onboard.domain.worker import WorkerState
from onboard.registry import schema
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings

pytestmark = pytest.mark.services

SECRET = "hunter2"


Onboard = Callable[..., Said]


@pytest.fixture
def onboard(monkeypatch: pytest.MonkeyPatch, command_line: CommandLine, tiny_base: Base) -> Onboard:
    """The program; settings are given by name, without their prefix."""

    def run(*words: str | Path, **settings: str) -> Said:
        for name, value in {"base": str(tiny_base.folder), "device": "cpu", **settings}.items():
            monkeypatch.setenv(f"ONBOARD_{name.upper()}", value)
        said = command_line(*words)
        assert "Traceback" not in said.err
        assert SECRET not in said.out + said.err
        return said

    return run


@contextmanager
def redis_with(*options: str) -> Iterator[int]:
    """A Redis server with options of its own; its port."""
    port = free_port()
    listening = [] if "--tls-port" in options else ["--port", str(port)]
    options = tuple(str(port) if option == "PORT" else option for option in options)
    command = ["redis-server", *listening, *options, "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port), what="Redis")
        yield port
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def locked_redis() -> Iterator[int]:
    with redis_with("--requirepass", "right") as port:
        yield port


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"), "-days", "2"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *made], check=True, capture_output=True
    )
    return folder / "cert.pem"


@pytest.fixture(scope="module")
def tls_redis(certificate: Path) -> Iterator[int]:
    files = ["--tls-cert-file", str(certificate), "--tls-key-file", str(certificate.with_name("key.pem"))]
    with redis_with("--port", "0", "--tls-port", "PORT", *files, "--tls-auth-clients", "no") as port:
        yield port


@pytest.fixture
def locked_url(postgres: PostgresServer, postgres_url: str) -> str:
    """The URL of a role that needs its password, with a wrong one."""
    access = postgres._data / "pg_hba.conf"
    rule = "host all locked 127.0.0.1/32 scram-sha-256\n"
    if rule not in access.read_text():
        access.write_text(rule + access.read_text())
    with psycopg.connect(postgres._dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS locked")
        connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
        connection.execute("SELECT pg_reload_conf()")
    return postgres_url.replace("postgres@", f"locked:{SECRET}@")


def test_a_wrong_password_of_the_database_is_told(onboard: Onboard, locked_url: str, redis_url: str) -> None:
    for words in (["jobs", "list"], ["worker"], ["db", "check"]):
        refused = onboard(*words, database_url=locked_url, broker_url=redis_url)
        assert refused.code == 5
        assert "refuses the password" in refused.err
        assert "ONBOARD_DATABASE_URL" in refused.remedy
    diagnosis = onboard("doctor", "--json", database_url=locked_url, broker_url=redis_url)
    assert diagnosis.code == 5
    assert "refuses the password" in diagnosis.check("database")["found"]
    assert diagnosis.check("broker")["ok"]


@pytest.mark.parametrize("credentials", ["", f":{SECRET}@"])
def test_a_wrong_password_of_the_broker_is_told(
    onboard: Onboard, postgres_url: str, locked_redis: int, credentials: str, tmp_path: Path
) -> None:
    settings = {"database_url": postgres_url, "broker_url": f"redis://{credentials}127.0.0.1:{locked_redis}/0"}
    diagnosis = onboard("doctor", "--json", **settings)
    assert diagnosis.code == 5
    assert "refuses the password" in diagnosis.check("broker")["found"]
    assert "redis://USER:PASSWORD@" in diagnosis.check("broker")["remedy"]
    worker = onboard("worker", **settings)  # waiting would not mend it
    assert worker.code == 5
    assert "ONBOARD_BROKER_URL" in worker.remedy
    rows = write_rows(tmp_path / "mood.jsonl", opinions(8))
    submitted = onboard("submit", "--dataset", rows, "--json", **settings)
    assert submitted.code == 0  # the job is stored
    assert "refuses the password" in submitted.err


def ring(url: str) -> None:
    CeleryDoorbell(Settings(database_url="sqlite://", broker_url=url)).ring("default")


def test_a_redis_that_wants_tls_is_told(onboard: Onboard, postgres_url: str, tls_redis: int) -> None:
    settings = {"database_url": postgres_url, "broker_url": f"redis://127.0.0.1:{tls_redis}/0"}
    diagnosis = onboard("doctor", "--json", **settings)
    assert diagnosis.code == 5
    assert "requires TLS" in diagnosis.check("broker")["found"]
    assert "rediss://" in diagnosis.check("broker")["remedy"]
    worker = onboard("worker", **settings)
    assert worker.code == 5
    assert "rediss://" in worker.remedy


def test_a_certificate_is_verified_and_a_known_one_accepted(tls_redis: int, certificate: Path) -> None:
    with error_of("broker-certificate-not-trusted"):
        ring(f"rediss://127.0.0.1:{tls_redis}/0")
    ring(f"rediss://127.0.0.1:{tls_redis}/0?ssl_ca_certs={certificate}")


def test_a_redis_without_tls_is_told(redis_url: str) -> None:
    with error_of("broker-without-tls"):
        ring(redis_url.replace("redis://", "rediss://"))


@pytest.mark.parametrize("url", ["redis://127.0.0.1:x/0", "carrier-pigeon://coop/1"])
def test_a_broker_that_is_none_is_told(onboard: Onboard, postgres_url: str, url: str) -> None:
    diagnosis = onboard("doctor", "--json", database_url=postgres_url, broker_url=url)
    assert diagnosis.code == 2
    assert "ONBOARD_BROKER_URL" in diagnosis.check("broker")["remedy"]
    assert onboard("worker", database_url=postgres_url, broker_url=url).code == 2


@pytest.mark.parametrize(("revision", "said", "remedy"), [
    ("older", "schema is older", "onboard db upgrade"),
    ("newer", "newer than this code", "Install the version of onboard"),
    ("none", "no tables yet", "onboard db upgrade"),
])  # fmt: skip
def test_another_schema_is_told(
    onboard: Onboard, postgres: PostgresServer, redis_url: str, revision: str, said: str, remedy: str
) -> None:
    url = postgres.create(f"schema_{revision}")
    if revision != "none":
        schema.upgrade(url)
        database = Database(url)
        with database.write() as session:
            stored = "20261121a" if revision == "older" else "20991231z"
            session.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": stored})
            session.execute(text("UPDATE schema_compatibility SET oldest_code = :found"), {"found": stored})
        database.dispose()
    for words in (["worker"], ["jobs", "list"], ["db", "check"]):
        refused = onboard(*words, database_url=url, broker_url=redis_url)
        assert refused.code == 4
        assert said in refused.err
        assert remedy in refused.remedy
    diagnosis = onboard("doctor", "--json", database_url=url, broker_url=redis_url)
    assert diagnosis.code == 4
    assert said in diagnosis.check("database")["found"]
    assert remedy in diagnosis.check("database")["remedy"]


@pytest.fixture
def grown_up(postgres_url: str, redis_url: str) -> dict[str, str]:
    return {"database_url": postgres_url, "broker_url": redis_url}


def enter(database: Database, name: str, queue: str, onboard: str) -> None:
    with database.write() as session:
        WorkerRepository(session).enter(
            name, WorkerState.RUNNING, queues=[queue], host="h", device="cuda:0", pid=1, facts={"onboard": onboard}
        )


def test_a_queue_that_no_worker_ever_served_is_told_and_the_job_waits(
    onboard: Onboard, grown_up: dict[str, str], postgres_database: Database, tmp_path: Path
) -> None:
    enter(postgres_database, "w1", "gpu-large", "0.1.0")
    rows = write_rows(tmp_path / "mood.jsonl", opinions(8))
    submitted = onboard("submit", "--dataset", rows, "--queue", "gpu-larg", "--json", **grown_up)
    assert submitted.code == 0  # whoever starts workers for what waits submits first
    assert json.loads(submitted.out)["state"] == "queued"
    assert "'gpu-larg' yet; known are default, gpu-large. Did you mean gpu-large?" in submitted.err
    assert "onboard worker --queue gpu-larg" in submitted.err
    for queue in ("gpu-large", "default"):
        assert "yet; known" not in onboard("submit", "--dataset", rows, "--queue", queue, "--json", **grown_up).err
    diagnosis = onboard("doctor", "--json", **grown_up)
    assert diagnosis.code == 5
    assert "default, gpu-larg" in diagnosis.check("queues")["found"]
    wrong = onboard("submit", "--dataset", rows, "--queue", "GPU large", **grown_up)
    assert wrong.code == 2
    assert "queue name" in wrong.err


def test_on_a_laptop_too_a_queue_that_no_worker_ever_served_is_told(
    onboard: Onboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.local.Onboard.start_worker", lambda *_given: None)
    rows = write_rows(tmp_path / "mood.jsonl", opinions(8))
    said = onboard("submit", "--dataset", rows, "--queue", "gpu", "--json").err
    assert "No worker has ever served the queue 'gpu' yet; known are default. Onboard starts a worker for it" in said
    assert "yet; known" not in onboard("submit", "--dataset", rows, "--task", "other", "--json").err


def test_an_older_worker_is_told(onboard: Onboard, grown_up: dict[str, str], postgres_database: Database) -> None:
    enter(postgres_database, "w1", "default", "0.0.9")
    enter(postgres_database, "w2", "default", "99.0.0")
    diagnosis = onboard("doctor", "--json", **grown_up)
    assert diagnosis.code == 4
    assert "w1 has 0.0.9" in diagnosis.check("workers")["found"]
    assert "w2" not in diagnosis.check("workers")["found"]
    assert "pip install" in diagnosis.check("workers")["remedy"]


def test_a_finished_job_cannot_be_cancelled(
    onboard: Onboard, grown_up: dict[str, str], postgres_database: Database
) -> None:
    with postgres_database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())
    assert onboard("jobs", "cancel", job.id, **grown_up).code == 0
    refused = onboard("jobs", "cancel", job.id, **grown_up)
    assert refused.code == 4
    assert "is cancelled; it cannot become cancelled" in refused.err
    assert f"onboard jobs show {job.id}" in refused.remedy


def test_a_time_limit_is_kept_and_a_wrong_one_is_told(
    onboard: Onboard, grown_up: dict[str, str], postgres_database: Database, tmp_path: Path
) -> None:
    rows = write_rows(tmp_path / "mood.jsonl", opinions(8))
    submitted = onboard("submit", "--dataset", rows, "--time-limit", "90", "--json", **grown_up)
    job = json.loads(submitted.out)["job"]
    assert json.loads(onboard("jobs", "show", job, "--json", **grown_up).out)["time_limit_seconds"] == 90
    assert onboard("jobs", "cancel", job, **grown_up).code == 0
    assert onboard("jobs", "retry", job, "--time-limit", "120", **grown_up).code == 0
    with postgres_database.read() as session:
        again = JobRepository(session).get(job)
    assert (again.state, again.time_limit_seconds) == (JobState.QUEUED, 120)
    wrong = onboard("submit", "--dataset", rows, "--time-limit", "0", **grown_up)
    assert wrong.code == 2
    assert "--time-limit 3600" in wrong.remedy
    wrong = onboard("jobs", "list", job_time_limit_seconds="soon", **grown_up)
    assert wrong.code == 2
    assert "ONBOARD_JOB_TIME_LIMIT_SECONDS" in wrong.err


@pytest.mark.parametrize(("device", "code"), [("gpu", 2), ("cuda:97", 5)])
def test_a_device_that_is_not_there_ends_a_worker_before_it_starts(
    onboard: Onboard, grown_up: dict[str, str], postgres_database: Database, device: str, code: int
) -> None:
    refused = onboard("worker", "--device", device, **grown_up)
    assert refused.code == code
    assert "ONBOARD_DEVICE" in refused.remedy
    with postgres_database.read() as session:
        assert WorkerRepository(session).list(include_stopped=True) == []


def test_the_schema_that_the_tests_call_older_is_older() -> None:
    assert migrations.HEAD != "20261121a"
