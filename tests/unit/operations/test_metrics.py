"""The metrics of a deployment: right by the database, parseable, and harmless when the database is away."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update
from support.real_services import PostgresServer
from support.registry_samples import add_job, claim_job

from onboard import __version__
from onboard.domain.job import JobState
from onboard.domain.worker import WorkerState
from onboard.errors import ConflictError, InputError, OnboardError
from onboard.operations.gc import collect_garbage
from onboard.operations.prometheus import make_registry
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.tables import JobEventRow, JobRow, WorkerRow
from onboard.registry.workers import QueueRepository, WorkerRepository
from onboard.settings import Settings
from workers.exporter import exported

GPU = {
    "name": "NVIDIA H100", "uuid": "GPU-1", "index": 3, "memory_used_bytes": 2**30, "memory_total_bytes": 80 * 2**30,
    "utilization_ratio": 0.37, "temperature_celsius": 61,
}  # fmt: skip


class Scrape:
    """What one scrape said; `scrape["onboard_jobs", "default", "queued"]` looks it up by the values of its labels."""

    def __init__(self, text: str) -> None:
        self.families = list(text_string_to_metric_families(text))
        self.samples = {
            (sample.name, *sample.labels.values()): sample.value
            for family in self.families
            for sample in family.samples
        }

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        return self.samples[key if isinstance(key, tuple) else (key,)]

    def labels(self, name: str) -> set[tuple[str, ...]]:
        return {key[1:] for key in self.samples if key[0] == name}


def scrape(database: Database) -> Scrape:
    return Scrape(generate_latest(make_registry(database)).decode())


def test_a_worker_tells_of_its_own_hearing(database: Database) -> None:
    enter(database, "w1")
    with database.write() as session:
        WorkerRepository(session).heartbeat("w1", {"deaf_seconds": 12.5, "renewals": 2, "dropped_messages": 9})
    enter(database, "older")
    seen = scrape(database)
    assert [seen["onboard_worker_deaf_seconds", worker] for worker in ("w1", "older")] == [12.5, 0]
    assert [seen["onboard_worker_renewals_total", worker] for worker in ("w1", "older")] == [2, 0]
    assert [seen["onboard_dropped_messages_total", worker] for worker in ("w1", "older")] == [9, 0]


def scrape_of(url: str) -> Scrape:
    database = Database(url)
    try:
        return scrape(database)
    finally:
        database.dispose()


def enter(database: Database, name: str, queues: Iterable[str] = ("default",), gpus: Iterable[Any] = ()) -> None:
    with database.write() as session:
        WorkerRepository(session).enter(
            name, WorkerState.RUNNING, queues=list(queues), host="h", pid=7, device="cuda:0", facts={"gpus": list(gpus)}
        )


def test_every_figure_is_that_of_the_database(database: Database) -> None:
    enter(database, "w1", ["default", "large"], [GPU])
    enter(database, "w2", ["large"])
    add_job(database), add_job(database), add_job(database), add_job(database, queue="alone")
    with database.write() as session:
        failed = ClaimRepository(session).claim("w1", ["default"])
        assert failed is not None
        ClaimRepository(session).finish(failed.id, 1, JobState.FAILED, error={"message": "no"})
        QueueRepository(session).set_paused("alone", True)
        WorkerRepository(session).drain("w2")
        session.execute(update(WorkerRow).where(WorkerRow.name == "w1").values(heartbeat_at=database_now() - 30))
        session.execute(update(JobRow).values(not_before_at=JobRow.not_before_at - 60))
    claim_job(database)
    seen = scrape(database)
    assert seen["onboard_database_up"] == 1
    assert {labels[2] for labels in seen.labels("onboard_build_info")} == {__version__}
    by_state = {state: seen["onboard_jobs", "default", state.value] for state in JobState}
    assert by_state == {**dict.fromkeys(JobState, 0), JobState.QUEUED: 1, JobState.RUNNING: 1, JobState.FAILED: 1}
    assert seen["celery_queue_length", "alone"] == seen["onboard_jobs", "alone", "queued"] == 1
    assert 60 <= seen["onboard_oldest_queued_seconds", "default"] < 300
    assert seen["onboard_oldest_queued_seconds", "large"] == 0
    assert [seen["onboard_queue_paused", queue] for queue in ("default", "alone")] == [0, 1]
    assert [seen["onboard_queue_workers", queue] for queue in ("default", "large", "alone")] == [1, 1, 0]
    assert [seen["celery_worker_up", worker] for worker in ("w1", "w2")] == [1, 1]
    assert [seen["celery_worker_tasks_active", worker] for worker in ("w1", "w2")] == [1, 0]
    assert 30 <= seen["onboard_worker_heartbeat_age_seconds", "w1"] < 300
    assert seen["celery_task_received_total", "default"] == 3
    assert seen["celery_task_started_total", "default"] == 2
    assert seen["celery_task_failed_total", "default"] == 1
    assert seen["celery_task_succeeded_total", "default"] == 0
    assert seen["celery_task_queue_wait_time_count", "default"] == 2
    assert seen["celery_task_runtime_count", "default"] == 1
    assert seen["celery_task_runtime_bucket", "+Inf", "default"] == 1
    assert {name: value for (name, *_), value in seen.samples.items() if "_gpu_" in name} == {
        "onboard_gpu_memory_used_bytes": 2**30,
        "onboard_gpu_memory_total_bytes": 80 * 2**30,
        "onboard_gpu_utilization_ratio": 0.37,
        "onboard_gpu_temperature_celsius": 61,
    }
    assert seen.labels("onboard_gpu_memory_used_bytes") == {("3", "h", "NVIDIA H100", "w1")}


def test_retries_dead_jobs_and_lost_leases_are_counted(database: Database) -> None:
    add_job(database)
    with database.write() as session:
        job = ClaimRepository(session).claim("w1", ["default"])
        assert job is not None
        ClaimRepository(session).release(job.id, job.attempt)
    for _ in range(3):
        claim_job(database, lease_seconds=-1)
    with database.write() as session:
        ClaimRepository(session).end_abandoned()
        JobRepository(session).retry(job.id)
    seen = scrape(database)
    assert seen["celery_task_retried_total", "default"] == 1
    assert seen["onboard_lease_expired_total", "default"] == 3
    assert seen["onboard_dead_jobs_total", "default"] == seen["celery_task_failed_total", "default"] == 1
    assert seen["celery_task_received_total", "default"] == 2
    assert seen["celery_task_runtime_count", "default"] == 0
    assert seen["onboard_jobs", "default", "dead"] == 0


def test_counters_do_not_fall_when_old_jobs_are_deleted(services: Services) -> None:
    add_job(services.database)
    failed = claim_job(services.database)
    with services.database.write() as session:
        ClaimRepository(session).finish(failed.id, 1, JobState.FAILED, error={"message": "no"})
        session.execute(update(JobRow).values(finished_at=JobRow.finished_at - 10 * 86400))
        session.execute(update(JobEventRow).values(at=JobEventRow.at - 10 * 86400))
    before = scrape(services.database)
    keeps_days = services.settings.model_copy(update={"retention_job_days": 1, "retention_event_days": 1})
    assert collect_garbage(replace(services, settings=keeps_days)).rows["jobs"] == 1
    after = scrape(services.database)
    assert after["onboard_jobs", "default", "failed"] == 0
    counters = {key for key in before.samples if key[0].startswith("celery_task_")}
    assert {key: after.samples[key] for key in counters} == {key: before.samples[key] for key in counters}


def test_counters_of_a_queue_begin_at_zero(services: Services) -> None:
    enter(services.database, "w1", ["fresh"])
    seen = scrape(services.database)
    assert seen["onboard_dead_jobs_total", "fresh"] == seen["celery_task_runtime_count", "fresh"] == 0


def test_buckets_hold_all_below_their_edge(services: Services) -> None:
    add_job(services.database), claim_job(services.database)
    seen = scrape(services.database)
    buckets = [value for (name, *_), value in seen.samples.items() if name == "celery_task_queue_wait_time_bucket"]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 1


def test_a_lost_worker_is_down_and_its_gpu_is_not_told(services: Services) -> None:
    enter(services.database, "w1", gpus=[GPU])
    with services.database.write() as session:
        session.execute(update(WorkerRow).values(heartbeat_at=database_now() - 100))
    seen = scrape(services.database)
    assert seen["celery_worker_up", "w1"] == 0
    assert seen["onboard_queue_workers", "default"] == 0
    assert seen["onboard_worker_heartbeat_age_seconds", "w1"] >= 100
    assert seen.labels("onboard_gpu_memory_used_bytes") == set()


def test_what_the_driver_does_not_know_is_left_out(services: Services) -> None:
    enter(
        services.database, "w1", gpus=[{"name": "GRID", "index": 0, "memory_used_bytes": 0, "utilization_ratio": None}]
    )
    seen = scrape(services.database)
    assert seen["onboard_gpu_memory_used_bytes", "0", "h", "GRID", "w1"] == 0
    assert seen.labels("onboard_gpu_utilization_ratio") == seen.labels("onboard_gpu_temperature_celsius") == set()


def test_a_worker_that_signed_off_is_gone(services: Services) -> None:
    enter(services.database, "w1")
    with services.database.write() as session:
        WorkerRepository(session).stop("w1")
    assert scrape(services.database).labels("celery_worker_up") == set()


@pytest.mark.parametrize("url", ["postgresql://u:secret@127.0.0.1:1/x", "sqlite:////nowhere/at/all.db"])
def test_a_database_that_is_away_is_told_and_nothing_breaks(url: str, caplog: pytest.LogCaptureFixture) -> None:
    seen = scrape_of(url)
    assert seen["onboard_database_up"] == 0
    assert {family.name for family in seen.families} == {"onboard_build_info", "onboard_database_up"}
    assert caplog.messages[0].startswith("No metrics: The database")
    assert "secret" not in caplog.text


@pytest.mark.services
def test_a_schema_of_another_release_is_told_and_nothing_breaks(postgres: PostgresServer) -> None:
    assert scrape_of(postgres.create("without_tables"))["onboard_database_up"] == 0


def get(url: str) -> Scrape:
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return Scrape(answer.read().decode())


def test_they_are_served_on_a_port_of_this_machine_only(sqlite_url: str) -> None:
    with exported(Settings(database_url=sqlite_url), port=0) as url:
        assert url.startswith("http://127.0.0.1:")
        assert get(url)["onboard_database_up"] == 1
        port = int(url.rpartition(":")[2].partition("/")[0])
    with pytest.raises(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
        pass


def test_a_database_that_is_away_is_served_as_such() -> None:
    with exported(Settings(database_url="postgresql://u@127.0.0.1:1/x"), port=0) as url:
        assert get(url)["onboard_database_up"] == 0


@pytest.mark.parametrize(
    ("host", "error"), [("127.0.0.1", ConflictError), ("192.0.2.1", InputError), ("no.such.invalid", InputError)]
)
def test_an_address_that_cannot_be_had_is_an_error_with_its_remedy(
    sqlite_url: str, host: str, error: type[OnboardError]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(error) as raised, exported(Settings(database_url=sqlite_url), port, host):
            pass
    assert "--metrics-" in raised.value.remedy
