"""What the compose file and the Helm chart start, run here as plain processes with the same settings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx
import psycopg
import pytest
import redis
from support.deployed import (
    Command,
    Started,
    chart,
    chart_of,
    compose,
    compose_process,
    documented,
    kubernetes_process,
    make_secrets,
)
from support.program import PROGRAM, Place
from support.real_jobs import opinions
from support.real_s3 import S3Server
from support.real_services import PostgresServer, free_port, wait_until
from support.registry_samples import sample_spec

from onboard.bases import Base
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.workers import QueueRepository

COMPOSE, KUBERNETES = "compose", "kubernetes"
WORKERS = {
    (COMPOSE, "cpu"): partial(compose_process, "worker-cpu"),
    (KUBERNETES, "cpu"): partial(kubernetes_process, "Deployment/onboard-worker-cpu"),
    (KUBERNETES, "gpu-large"): partial(kubernetes_process, "Deployment/onboard-worker-gpu-large"),
}
APIS = {
    COMPOSE: partial(compose_process, "api"),
    KUBERNETES: partial(kubernetes_process, "Deployment/onboard-api"),
}
TOKEN = "0123456789abcdef" * 4
AWS_CREDENTIALS = "[default]\naws_access_key_id = test\naws_secret_access_key = test\n"

pytestmark = pytest.mark.services


class Cluster:
    """Services at their real places, and the folders that a container has."""

    def __init__(self, folder: Path, database_url: str, broker_url: str, base: Base, s3: S3Server) -> None:
        self.folder, self.base, self.s3 = folder, base, s3
        self.secrets, self.home, self.tmp = folder / "secrets", folder / "home", folder / "tmp"
        for place in (self.secrets, self.home, self.tmp):
            place.mkdir()
        secrets = {
            "onboard_database_url": database_url.replace("+psycopg", ""),  # as KEDA too understands it
            "onboard_broker_url": broker_url,
            "aws_credentials": AWS_CREDENTIALS,
            "onboard_bootstrap_token": TOKEN,
        }
        for name, text in secrets.items():
            (self.secrets / name).write_text(text)
        self.changes = {
            "/run/secrets": str(self.secrets),
            "/var/lib/onboard": str(self.home),
            "/tmp/": f"{self.tmp}/",
            "cuda:0": "cpu",
            "9100": str(free_port()),
            "8000": str(free_port()),
            "0.0.0.0": "127.0.0.1",
        }

    def here(self, started: Started) -> Started:
        """The process as it is started on this machine."""
        return started.with_changes(self.changes)

    def environment(self, started: Started) -> dict[str, str]:
        """What the files set; where the secrets lie, whose base it is and where S3 listens is known here only."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "OMP_NUM_THREADS": "1",
            **self.here(started).environment,
            "ONBOARD_SECRETS_DIR": str(self.secrets),
            "ONBOARD_BASE": str(self.base.folder),
            "AWS_ENDPOINT_URL": self.s3.credentials.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def run(self, words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *words], env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )


@dataclass(frozen=True)
class ComposeRedis:
    """The `redis` of the compose file with the secrets of docs/how-to/deploy.md.

    Args:
        url: what the workers' secret says, but for the address.
        health: its health check.
        folder: where it keeps its files.
    """

    url: str
    health: str
    folder: Path

    def healthy(self, secret: Path | None = None) -> bool:
        command = self.health if secret is None else self.health.replace(str(self.folder / "redis_conf"), str(secret))
        return subprocess.run(command, shell=True, capture_output=True, check=False).returncode == 0


@pytest.fixture
def compose_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ComposeRedis]:
    folder = tmp_path_factory.mktemp("redis")
    secrets = make_secrets(folder)
    (folder / "redis_conf").write_text((secrets / "redis_conf").read_text())
    service, port = compose()["services"]["redis"], free_port()
    kind, test = service["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    redis = ComposeRedis(
        (secrets / "onboard_broker_url").read_text().strip().replace("@redis:6379", f"@127.0.0.1:{port}"),
        test.replace("/run/secrets", str(folder)).replace("redis-cli", f"redis-cli -p {port}"),
        folder,
    )
    command = [word.replace("/run/secrets", str(folder)) for word in service["command"]]
    server = subprocess.Popen(
        [*command, "--port", str(port), "--dir", str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(redis.healthy, what="the health check of Redis")
        yield redis
    finally:
        server.kill()
        server.wait()
    assert not redis.healthy()


@pytest.fixture
def cluster(tmp_path: Path, postgres_url: str, tiny_base: Base, s3_url: str, s3_server: S3Server, kind: str,
            request: pytest.FixtureRequest) -> Cluster:  # fmt: skip
    """Compose brings its own Redis, with a password; a cluster has one somewhere."""
    of_compose = kind == COMPOSE
    broker = request.getfixturevalue("compose_redis").url if of_compose else request.getfixturevalue("redis_url")
    return Cluster(tmp_path, postgres_url, broker, tiny_base, s3_server)


@pytest.fixture
def empty_url(postgres: PostgresServer, tmp_path: Path) -> Iterator[str]:
    """A database without a table."""
    yield postgres.create("unmigrated")
    with psycopg.connect(postgres.url("postgres").replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("DROP DATABASE unmigrated WITH (FORCE)")


@pytest.mark.parametrize("kind", [COMPOSE, KUBERNETES])
def test_the_migration_makes_the_schema_that_workers_wait_for_and_may_be_run_again(
    kind: str, tmp_path: Path, empty_url: str, redis_url: str, tiny_base: Base, s3_server: S3Server
) -> None:
    cluster = Cluster(tmp_path, empty_url, redis_url, tiny_base, s3_server)
    worker = WORKERS[kind, "cpu"]()
    migration = compose_process("migrate") if kind == COMPOSE else kubernetes_process(*chart_of("Job"))
    too_early = cluster.run(cluster.here(worker).words, cluster.environment(worker))
    assert (too_early.returncode, "onboard db upgrade" in too_early.stderr) == (4, True)
    for _ in range(2):
        done = cluster.run(cluster.here(migration).words, cluster.environment(migration))
        assert done.returncode == 0, done.stderr
    assert cluster.run(["db", "check"], cluster.environment(worker)).returncode == 0


@pytest.mark.parametrize(("kind", "device"), [(COMPOSE, "cpu"), (KUBERNETES, "gpu-large")])
def test_a_worker_is_healthy_unless_it_hangs_takes_a_job_and_leaves_when_it_is_told(
    kind: str, device: str, cluster: Cluster
) -> None:
    described = WORKERS[kind, device]()
    started, environment = cluster.here(described), cluster.environment(described)
    place = Place(cluster.folder, cluster.base.folder, environment)
    queue = next((word.partition("=")[2] for word in started.words if word.startswith("--queue=")), "default")
    assert not healthy(started, environment)
    with Command(started.words, environment, cluster.folder) as worker:
        alive = cluster.tmp / "alive"
        wait_until(alive.exists, 240, "the first sign of life")  # each health check is a process
        wait_until(lambda: healthy(started, environment), 240, "the health check")
        worker.process.send_signal(signal.SIGSTOP)
        os.utime(alive, (time.time(), time.time() - 61))  # a minute passes
        assert not healthy(started, environment)
        worker.process.send_signal(signal.SIGCONT)
        wait_until(lambda: healthy(started, environment), 240, "the health check after the pause")
        rows = place.write("mood.jsonl", opinions(8))
        document = place.json("submit", "--dataset", rows, "--queue", queue, "--fast", "--wait")
        assert document["state"] == "succeeded"
        (row,) = place.json("workers", "list")["workers"]
        assert (row["queues"], row["pid"]) == ([queue], worker.process.pid)
        if kind == COMPOSE:
            tools = compose_process("onboard")
            doctor = cluster.run(cluster.here(tools).words, cluster.environment(tools))
            assert doctor.returncode == 0, doctor.stdout + doctor.stderr
        assert worker.stop(started.grace_seconds) == 0


@pytest.mark.parametrize("kind", APIS)
def test_the_api_is_healthy_knows_the_token_of_its_secret_and_leaves_when_it_is_told(
    kind: str, cluster: Cluster
) -> None:
    described = APIS[kind]()
    started, environment = cluster.here(described), cluster.environment(described)
    url = f"http://127.0.0.1:{cluster.changes['8000']}"

    def status(path: str, **headers: str) -> int:
        try:
            return httpx.get(url + path, headers=headers).status_code
        except httpx.TransportError:
            return 0

    with Command(started.words, environment, cluster.folder) as api:
        wait_until(lambda: status("/healthz") == 200, 240, "the start of the API")
        assert status("/readyz") == 200
        if kind == COMPOSE:
            assert healthy(started, environment)
        name = {COMPOSE: "api:8000", KUBERNETES: "onboard-api:8000"}[kind]
        assert [status("/v1/jobs", Host=host) for host in (name, "other:8000")] == [401, 421]
        assert status("/v1/tokens", Host=name, Authorization=f"Bearer {TOKEN}") == 200
        assert TOKEN not in api.said()
        assert api.stop(started.grace_seconds) == 0
    assert kind != COMPOSE or not healthy(started, environment)


def healthy(started: Started, environment: dict[str, str]) -> bool:
    command = [sys.executable if word == "python" else word for word in started.health]  # here it may have another name
    return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0


def test_redis_asks_for_its_password_and_keeps_its_bells_on_disk(compose_redis: ComposeRedis, tmp_path: Path) -> None:
    wrong = tmp_path / "redis_conf"
    wrong.write_text("requirepass wrong\n")
    assert not compose_redis.healthy(wrong)
    with redis.Redis.from_url(compose_redis.url) as client:
        assert client.config_get("appendonly", "save") == {"appendonly": "yes", "save": ""}
    address = compose_redis.url.rpartition("@")[2]
    with redis.Redis.from_url(f"redis://{address}") as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    assert list(compose_redis.folder.glob("appendonlydir/*.aof"))


def test_the_health_check_of_postgresql_tells_whether_it_is_up(postgres: PostgresServer) -> None:
    kind, *command = compose()["services"]["postgres"]["healthcheck"]["test"]
    assert kind == "CMD"

    def code(port: int) -> int:
        environment = {"PATH": os.environ["PATH"], "PGPORT": str(port)}
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode

    assert code(postgres.port) == 0
    assert code(free_port()) != 0


STATES = ("queued", "running", "succeeded", "failed", "cancelled", "dead")


@pytest.mark.parametrize("name", ["ScaledObject/onboard-worker-cpu", "ScaledJob/onboard-worker-gpu-large"])
def test_keda_counts_what_is_queued_and_running_in_the_queue_of_its_workers(
    name: str, postgres_database: Database, postgres_url: str
) -> None:
    (trigger,) = chart(documented("# values.yaml"))[name]["spec"]["triggers"]
    queue = "gpu-large" if "gpu-large" in name else "default"
    for state, count in zip(STATES, (3, 2, 5, 5, 5, 5), strict=True):
        for jobs_queue in (queue, "other"):
            add_jobs(postgres_database, postgres_url, jobs_queue, state, count)
    assert answer(postgres_url, trigger["metadata"]["query"]) == 5
    with postgres_database.write() as session:
        QueueRepository(session).set_paused("other", True)
    assert answer(postgres_url, trigger["metadata"]["query"]) == 5
    with postgres_database.write() as session:
        QueueRepository(session).set_paused(queue, True)
    assert answer(postgres_url, trigger["metadata"]["query"]) == 2


def add_jobs(database: Database, url: str, queue: str, state: str, count: int) -> None:
    with database.write() as session:
        jobs = [JobRepository(session).add(sample_spec(), queue=queue)[0].id for _ in range(count)]
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute("UPDATE jobs SET state = %s WHERE id = ANY(%s)", (state, jobs))


def answer(url: str, query: str) -> int:
    """What a client that is not ours gets, as KEDA's is."""
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return int(row[0])
