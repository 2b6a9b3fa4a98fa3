"""What the people who watch see, on SQLite and on PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update
from support import watched_jobs as past

from onboard.contract.jobs import WaitingDocument
from onboard.domain.job import Job, JobState, Stage
from onboard.domain.waiting import Waiting
from onboard.domain.worker import WorkerState
from onboard.errors import SlotTakenError
from onboard.jobs import status as watching
from onboard.jobs.estimate import DatasetSize, estimate_seconds
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import JobRow
from onboard.registry.workers import QueueRepository

SMALL = {
    "rows": {"train": 32, "validation": 0, "test": 0},
    "characters": {"mean": 400.0},
    "validation": {"held_out": 0},
}
NEAR = 30  # seconds: a test may have to wait for the machine


def by_queue(database: Database) -> dict[str, dict[str, Any]]:
    return {queue["queue"]: queue for queue in watching.queues(database).to_json()["queues"]}


def why(database: Database, job: Job) -> Waiting:
    wait = watching.waiting(database, job)
    assert wait is not None
    return wait


def test_every_queue_with_jobs_workers_or_a_recent_past_is_seen(database: Database) -> None:
    past.worker(database, "w1", queues=("served",))
    past.ended(database, ago=60, queue="over")
    past.queued(database, queue="waiting")
    with database.write() as session:
        QueueRepository(session).set_paused("held", True)
    queues = by_queue(database)
    assert set(queues) == {"default", "held", "over", "served", "waiting"}
    assert (queues["served"]["live_workers"], queues["over"]["recent"]["ended"]) == (1, 1)
    assert [name for name, queue in queues.items() if queue["unserved"]] == ["waiting"]
    assert [name for name, queue in queues.items() if queue["paused"]] == ["held"]


@pytest.mark.parametrize(
    ("state", "silent", "serves"),
    [
        (WorkerState.RUNNING, 0, True),
        (WorkerState.STARTING, 0, True),
        (WorkerState.DRAINING, 0, False),
        (WorkerState.RUNNING, 61, False),
    ],
)
def test_only_live_workers_that_take_jobs_serve_a_queue(
    database: Database, state: WorkerState, silent: float, serves: bool
) -> None:
    past.worker(database, "w1", state=state, silent=silent)
    job = past.queued(database)
    assert by_queue(database)["default"]["unserved"] is not serves
    assert why(database, job).live_workers == serves


def test_a_worker_is_seen_with_its_job_and_the_time_that_jobs_like_it_took(database: Database) -> None:
    past.worker(database, "busy", gpus=[], gpu_reason="runs on the CPU", resident_bytes=1)
    past.worker(database, "idle", silent=20)
    for _ in range(3):
        past.ended(database, ago=100)
    past.ended(database, ago=50, queue="gpu", stages={"probe": 999.0, "train": 999.0})
    job = past.running(database, "busy", ago=40, stage=Stage.PROBE, stage_ago=4, note="fold 1")
    busy, idle = watching.workers(database).to_json()["workers"]
    assert (busy["worker"], busy["job"], busy["task"], busy["stage"]) == ("busy", job.id, "colours", "probe")
    assert (busy["attempt"], busy["max_attempts"], busy["note"]) == (1, 3, "fold 1")
    assert busy["left_basis"] in ("3 similar jobs", "probe takes longer than it did for 3 similar jobs")
    if busy["left_seconds"] is not None:  # unless the machine was so slow that the stage is late
        assert 6 + 20 + 5 + 2 - NEAR < busy["left_seconds"] <= 6 + 20 + 5 + 2
    assert busy["facts"]["gpu_reason"] == "runs on the CPU"
    assert (idle["job"], idle["task"], idle["stage"], idle["left_seconds"]) == (None, None, None, None)
    assert idle["heartbeat_age_seconds"] == pytest.approx(20, abs=NEAR)


def test_the_dataset_says_how_long_a_first_job_of_the_shipped_base_takes(database: Database) -> None:
    past.worker(database, "cpu")
    past.worker(database, "gpu", device="cuda:0")
    slow = past.running(database, "cpu", base_digest="new", dataset_report=SMALL)
    quick = past.running(database, "gpu", base_digest="new", dataset_report=SMALL)
    left = {worker["job"]: worker for worker in watching.workers(database).to_json()["workers"]}
    assert left[slow.id]["left_seconds"] == pytest.approx(estimate_seconds(DatasetSize(32, 100)), abs=NEAR)
    assert left[quick.id]["left_seconds"] == pytest.approx(estimate_seconds(DatasetSize(32, 100), gpu=True), abs=NEAR)
    assert left[quick.id]["left_seconds"] < left[slow.id]["left_seconds"]
    assert left[slow.id]["left_basis"] == "the size of its dataset"


def test_all_that_was_handed_in_takes_its_time(database: Database) -> None:
    report = {
        "kind": "classification",
        "rows": {"train": 2000, "validation": 0, "test": 1000},
        "characters": {"mean": 4000.0},
        "validation": {"held_out": 500},
    }
    for name in ("plain", "named", "more"):
        past.worker(database, name)
    jobs = {
        "plain": past.running(database, "plain", base_digest="new", dataset_report=report),
        "named": past.running(database, "named", base_digest="new", dataset_report=report, init="sst2"),
        "more": past.running(
            database, "more", base_digest="new", dataset_report=report, unlabelled={"considered": 5000}
        ),
    }
    left_by_job = {worker["job"]: worker["left_seconds"] for worker in watching.workers(database).to_json()["workers"]}
    left = {name: left_by_job[job.id] for name, job in jobs.items()}
    expected = {
        "plain": estimate_seconds(DatasetSize(1500, 1000, validation=500, test=1000)),
        "named": estimate_seconds(DatasetSize(1500, 1000, validation=500, test=1000), probed=False),
        "more": estimate_seconds(DatasetSize(1500, 1000, validation=500, test=1000), unlabelled=5000),
    }
    assert left == pytest.approx(expected, abs=NEAR)
    assert left["named"] + NEAR < left["plain"] < left["more"] - NEAR


def test_jobs_like_it_say_more_than_the_size_of_its_dataset_and_for_another_base_they_alone_do(
    database: Database,
) -> None:
    for name in ("known", "other"):
        past.worker(database, name)
    past.ended(database, ago=60, options={"dataset_report": SMALL}, stages={"train": 5000.0})
    known = past.running(database, "known", dataset_report=SMALL)
    other = past.running(database, "other", base="t5-base", base_digest="new", dataset_report=SMALL)
    left = {worker["job"]: worker for worker in watching.workers(database).to_json()["workers"]}
    assert (left[known.id]["left_seconds"], left[known.id]["left_basis"]) == (5000.0, "1 similar job")
    assert left[other.id]["left_seconds"] is None


def test_no_forecast_is_made_without_a_similar_job_or_for_a_late_one(database: Database) -> None:
    past.worker(database, "w1")
    past.worker(database, "w2")
    unknown = past.running(database, "w1", base_digest="new")
    late = past.running(database, "w2", ago=999, base_digest="new", dataset_report=SMALL)
    left = {worker["job"]: worker for worker in watching.workers(database).to_json()["workers"]}
    assert (left[unknown.id]["left_seconds"], left[late.id]["left_seconds"]) == (None, None)
    assert left[unknown.id]["left_basis"] == "no similar job has succeeded lately"
    assert left[late.id]["left_basis"] == "takes longer than its dataset size suggests"


def test_open_jobs_are_what_runs_and_then_what_waits_in_the_order_of_its_turn(database: Database) -> None:
    past.worker(database, "w1")
    running = past.running(database, "w1", stage=Stage.TRAIN, lease_left=-5)
    first, second = past.queued(database, ago=80), past.queued(database, priority=3)
    past.queued(database, queue="gpu")
    seen = watching.open_jobs(database, most=2).to_json()
    assert [job["job"] for job in seen["running"]] == [running.id]
    assert seen["running"][0]["lease_left_seconds"] < 0
    assert [(job["job"], job["ahead"]) for job in seen["queued"]] == [(second.id, 0), (first.id, 1)]
    assert seen["queued"][1]["waited_seconds"] == pytest.approx(80, abs=NEAR)
    assert seen["queued_in_all"] == 3


def test_a_job_on_a_worker_that_is_gone_still_shows(database: Database) -> None:
    job = past.running(database, "nobody")
    seen = watching.running_job(database, job)
    assert seen is not None
    assert (seen.host, seen.heartbeat_age_seconds) == (None, None)
    assert watching.running_job(database, past.queued(database)) is None


def test_a_wait_behind_others_without_a_worker_is_explained(database: Database) -> None:
    for _ in range(3):
        past.queued(database, queue="gpu-large")
    job = past.queued(database, queue="gpu-large")
    assert why(database, job).message == "3 ahead, no worker on gpu-large"


def test_a_wait_in_a_paused_queue_is_explained(database: Database) -> None:
    past.worker(database, "w1")
    job = past.queued(database)
    with database.write() as session:
        QueueRepository(session).set_paused("default", True)
    assert why(database, job).message == "next in line, the queue default is paused"


def test_a_wait_for_a_retry_is_explained_with_the_error(database: Database) -> None:
    past.worker(database, "w1")
    past.queued(database)
    with database.write() as session:
        claims = ClaimRepository(session)
        job = claims.claim("w1", ["default"])
        assert job is not None
        job = claims.retry_later(job.id, job.attempt, {"message": "The hub cannot be reached."}, delay_seconds=600)
    reason = WaitingDocument.of_waiting(why(database, job)).to_json()
    assert reason["last_error"] == "The hub cannot be reached."
    assert reason["retry_in_seconds"] == pytest.approx(600, abs=NEAR)
    assert reason["starts_in_seconds"] is None
    assert "(attempt 2 of 3) after: The hub cannot be reached." in reason["message"]


def test_a_wait_for_another_job_says_for_which_and_counts_no_attempts(database: Database) -> None:
    past.worker(database, "w1")
    past.queued(database)
    error = SlotTakenError("Job j1 rebuilds an earlier version.", holder="j1").to_json()
    with database.write() as session:
        claims = ClaimRepository(session)
        job = claims.claim("w1", ["default"])
        assert job is not None
        job = claims.put_off(job.id, job.attempt, error, 600)
    message = why(database, job).message
    assert message.endswith("checks again in 10 min: Job j1 rebuilds an earlier version.")
    assert "attempt" not in message


def test_a_free_worker_takes_the_next_job_at_once(database: Database) -> None:
    past.worker(database, "w1")
    assert why(database, past.queued(database)).starts_in_seconds == 0.0


def test_the_start_behind_a_running_job_is_its_time_left_and_the_usual_time_of_those_ahead(database: Database) -> None:
    past.worker(database, "w1")
    for _ in range(3):
        past.ended(database, ago=100, run=1000, stages={"train": 5000.0})
    past.running(database, "w1", stage=Stage.TRAIN, stage_ago=1000)
    past.queued(database)
    starts = why(database, past.queued(database)).starts_in_seconds
    assert starts == pytest.approx(4000 + 1000, abs=NEAR)


def test_a_job_of_a_newer_release_waits_for_newer_workers(database: Database) -> None:
    past.worker(database, "old", onboard="0.0.1")
    job = past.queued(database)
    with database.write() as session:
        session.execute(update(JobRow).values(needs_release=2))
        job = JobRepository(session).get(job.id)
    reason = why(database, job)
    assert (reason.live_workers, reason.outdated_workers) == (0, 1)
    past.worker(database, "new", onboard="0.0.2")
    assert why(database, job).live_workers == 1


@pytest.mark.parametrize("state", [state for state in JobState if state is not JobState.QUEUED])
def test_only_a_queued_job_waits(database: Database, state: JobState) -> None:
    job = past.queued(database)
    with database.write() as session:
        session.execute(update(JobRow).values(state=state))
        job = JobRepository(session).get(job.id)
    assert watching.waiting(database, job) is None
