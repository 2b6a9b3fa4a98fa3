"""Doctor and watchers make one judgement of jobs that wait, near and far."""

from __future__ import annotations

from typing import Any

from support import watched_jobs as past
from support.refusals import refused as error_of
from support.registry_samples import register_sample_base

from cli.standing import require_served, workers_standing
from onboard.domain.job import JobState
from onboard.domain.release import release_number
from onboard.jobs import control, status
from onboard.registry.database import Database
from onboard.registry.outbox import OutboxRepository
from onboard.registry.versions import VersionRepository


def served(database: Database, **how: Any) -> None:
    require_served(status.queues(database).to_json(), **{"near": True, **how})


def standing(database: Database, release: int = release_number(), **how: Any) -> str:
    return workers_standing(status.workers(database).to_json(), release, **how)


def test_a_job_that_a_dead_worker_left_is_told_with_the_command_that_takes_it_up(database: Database) -> None:
    past.worker(database, "w1", silent=100)
    job = past.running(database, "w1", lease_left=-40)
    for how in ({}, {"near": False}, {"embedded": True}):
        with error_of("queue-without-worker"):
            served(database, **how)
    (queue,) = status.queues(database).to_json()["queues"]
    assert (queue["lost"], queue["running"], queue["unserved"]) == (1, 1, True)
    wait = status.waiting(database, job)
    assert wait is not None
    assert "worker w1, which had it, stopped responding" in wait.message
    assert wait.remedy == "onboard worker --queue default"
    past.worker(database, "w2")
    served(database)
    assert status.waiting(database, past.running(database, "w2", queue="other")) is None, "its worker lives"


def test_on_one_machine_a_dead_process_is_known_before_its_heartbeat_is_old(database: Database) -> None:
    past.worker(database, "w1")
    past.running(database, "w1")
    served(database)
    assert standing(database, dead={"w1"}) == ""
    with error_of("queue-without-worker"):
        served(database, dead=True, embedded=True)


def test_waiting_jobs_without_a_worker_are_no_health_anywhere(database: Database) -> None:
    past.queued(database)
    for embedded in (False, True):
        with error_of("queue-without-worker", queue="default"):
            served(database, embedded=embedded)
    control.set_paused(database, "default", True)
    served(database)


def test_a_deaf_worker_is_named_and_one_that_was_is_told(database: Database) -> None:
    past.worker(database, "w1", renewals=2, deaf_seconds=0.0)
    assert standing(database) == "w1 on cpu (was unresponsive, restarted 2 times)"
    past.worker(database, "w1", renewals=2, deaf_seconds=31.4)
    with error_of("worker-does-not-listen"):
        standing(database)
    with error_of("workers-outdated"):
        standing(database, release=release_number("99.0"))


def test_a_worker_that_lost_its_job_is_not_shown_with_a_part_of_it(database: Database) -> None:
    past.worker(database, "w1", silent=100)
    past.running(database, "w1", lease_left=-40)
    (worker,) = status.workers(database).to_json()["workers"]
    assert (worker["job"], worker["task"], worker["stage"], worker["attempt"]) == (None, None, None, None)


def test_a_cancelled_duplicate_does_not_stand_before_the_job_that_ended_well(database: Database) -> None:
    done = past.ended(database, ago=60)
    duplicate = past.queued(database)
    assert control.find_job(database, "colours").id == duplicate.id
    control.cancel(database, "colours")
    assert control.find_job(database, "colours").id == done
    assert control.retry(database, "colours").id == duplicate.id
    control.cancel(database, duplicate.id)
    only = past.queued(database)
    assert control.cancel(database, "colours").id == only.id
    assert control.find_job(database, only.id).state is JobState.CANCELLED


def test_a_task_that_is_being_learned_is_told_to_whoever_asks_for_it(database: Database) -> None:
    register_sample_base(database)
    job = past.queued(database)
    with database.read() as session:
        for reference in ("colours", "colours@v2"):
            with error_of("version-not-yet-learned"):
                VersionRepository(session).resolve(reference)
    control.cancel(database, job.id)
    with database.read() as session, error_of("unknown-task"):
        VersionRepository(session).resolve("colours")


def test_where_nobody_was_ever_told_of_anything_no_webhook_is_dropped(database: Database) -> None:
    with database.write() as session:
        OutboxRepository(session).add("embedding.published", {})
        assert OutboxRepository(session).drop_undelivered() == 0
        assert not OutboxRepository(session).has_work(["a"], 60.0)
    with database.write() as session:
        OutboxRepository(session).add("embedding.published", {})
        OutboxRepository(session).address(["a"], 60.0)
        OutboxRepository(session).add("embedding.published", {})
        assert OutboxRepository(session).drop_undelivered() == 2
