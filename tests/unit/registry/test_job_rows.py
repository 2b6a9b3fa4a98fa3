"""Jobs in the registry, on SQLite and on PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refused
from support.registry_samples import add_job, job_now, sample_spec

from onboard.contract.jobs import JobEventDocument
from onboard.domain.job import TRANSITIONS, Job, JobSpec, JobState, Stage, require_transition, sources_of
from onboard.domain.job_search import JobSearch
from onboard.errors import ConflictError, FencedError, InputError
from onboard.jobs.many import listed_jobs
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.workers import QueueRepository


def claim(
    database: Database, worker: str = "w1", queues: tuple[str, ...] = ("default",), **options: float
) -> Job | None:
    with database.write() as session:
        return ClaimRepository(session).claim(worker, queues, pid=1234, **options)


def run_out(database: Database, job: Job) -> None:
    with database.write() as session:
        ClaimRepository(session).heartbeat(job.id, job.attempt, lease_seconds=-1)


def test_a_spec_survives_json_with_the_types_of_its_options() -> None:
    spec = JobSpec("t", "sha256:0", shots=16, options={"a": [1, 1.5, True, None, "ü"]})
    assert JobSpec.from_json(spec.to_json()) == spec


def test_a_spec_with_fields_of_a_newer_program_is_refused() -> None:
    with refused("job-fields-unknown"):
        JobSpec.from_json({**sample_spec().to_json(), "colour": "red"})


@given(st.sampled_from(JobState), st.sampled_from(JobState))
def test_the_table_of_transitions_decides(present: JobState, target: JobState) -> None:
    if target in TRANSITIONS[present]:
        require_transition("j", present, target)
        assert present in sources_of(target)
    else:
        with pytest.raises(ConflictError):
            require_transition("j", present, target)


def test_nothing_follows_success() -> None:
    assert TRANSITIONS[JobState.SUCCEEDED] == frozenset()


def test_the_same_key_returns_the_earlier_job(database: Database) -> None:
    with database.write() as session:
        first, new = JobRepository(session).add(sample_spec(), key="k")
    with database.write() as session:
        again, new_again = JobRepository(session).add(sample_spec(), key="k")
    assert (new, new_again) == (True, False)
    assert again == first


def test_the_same_key_for_another_request_is_a_conflict(database: Database) -> None:
    add_job(database, key="k")
    with database.write() as session, refused("key-in-use"):
        JobRepository(session).add(sample_spec("other"), key="k")


def test_jobs_without_a_key_are_never_taken_for_one_another(database: Database) -> None:
    assert add_job(database).id != add_job(database).id


def test_a_queue_has_a_name(database: Database) -> None:
    with pytest.raises(InputError):
        add_job(database, queue="../etc")


def test_an_unknown_job_is_not_found(database: Database) -> None:
    with database.read() as session, refused("unknown-job", job="ffffffffffff"):
        JobRepository(session).get("ffffffffffff")


def test_a_claim_takes_the_most_urgent_and_among_equals_the_oldest(database: Database) -> None:
    low, first, second, high = (add_job(database, priority=priority) for priority in (-1, 0, 0, 5))
    claimed = [claim(database) for _ in range(5)]
    assert [job.id if job else None for job in claimed] == [high.id, first.id, second.id, low.id, None]


def test_a_claim_starts_the_job_with_a_lease(database: Database) -> None:
    add_job(database)
    job = claim(database, "w7")
    assert job is not None
    assert (job.state, job.attempt, job.worker, job.worker_pid) == (JobState.RUNNING, 1, "w7", 1234)
    assert job.started_at is not None
    assert job.lease_expires_at is not None
    assert 59 < job.lease_expires_at - job.started_at < 61


def test_a_claim_looks_into_the_workers_queues_only(database: Database) -> None:
    add_job(database, queue="gpu")
    assert claim(database, queues=("default",)) is None
    assert claim(database, queues=("default", "gpu")) is not None


def test_a_paused_queue_gives_nothing_until_it_is_resumed(database: Database) -> None:
    add_job(database)
    with database.write() as session:
        QueueRepository(session).set_paused("default", True)
    assert claim(database) is None
    with database.write() as session:
        assert ClaimRepository(session).runnable() == {}
        QueueRepository(session).set_paused("default", False)
        assert ClaimRepository(session).runnable() == {"default": 1}
    assert claim(database) is not None


def test_a_running_job_goes_on_elsewhere_once_its_lease_ran_out(database: Database) -> None:
    add_job(database)
    first = claim(database, "w1")
    assert first is not None
    assert claim(database, "w2") is None
    run_out(database, first)
    second = claim(database, "w2")
    assert second is not None
    assert (second.id, second.attempt, second.worker) == (first.id, 2, "w2")


def test_a_heartbeat_keeps_the_lease(database: Database) -> None:
    add_job(database)
    job = claim(database, lease_seconds=-1)
    assert job is not None
    with database.write() as session:
        assert ClaimRepository(session).heartbeat(job.id, 1) is False
    assert claim(database, "w2") is None


def test_an_earlier_attempt_can_do_nothing_any_more(database: Database) -> None:
    add_job(database)
    old = claim(database, "w1")
    assert old is not None
    run_out(database, old)
    assert claim(database, "w2") is not None
    with database.write() as session:
        claims = ClaimRepository(session)
        for act in (
            lambda: claims.heartbeat(old.id, 1),
            lambda: claims.cancel_requested(old.id, 1),
            lambda: claims.append(old.id, 1, "note", "late"),
            lambda: claims.finish(old.id, 1, JobState.SUCCEEDED),
            lambda: claims.release(old.id, 1),
            lambda: claims.retry_later(old.id, 1, {}, 0),
        ):
            with pytest.raises(FencedError):
                act()
    assert job_now(database, old).state is JobState.RUNNING


def test_a_finished_job_cannot_be_finished_again(database: Database) -> None:
    add_job(database)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        done = ClaimRepository(session).finish(job.id, 1, JobState.SUCCEEDED, result={"version": 1})
    assert (done.state, done.result, done.error, done.lease_expires_at) == (
        JobState.SUCCEEDED,
        {"version": 1},
        None,
        None,
    )
    with database.write() as session, pytest.raises(FencedError):
        ClaimRepository(session).finish(job.id, 1, JobState.FAILED)


def test_a_drained_job_keeps_its_attempts(database: Database) -> None:
    add_job(database, max_attempts=1)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        ClaimRepository(session).release(job.id, 1)
    again = claim(database, "w2")
    assert again is not None
    assert again.attempt == 2


def test_a_retryable_error_waits_before_the_next_attempt(database: Database) -> None:
    add_job(database)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        waiting = ClaimRepository(session).retry_later(job.id, 1, {"code": "unavailable"}, delay_seconds=3600)
    assert waiting.state is JobState.QUEUED
    assert waiting.error == {"code": "unavailable"}
    assert waiting.not_before_at - waiting.created_at > 3500
    assert claim(database) is None


def test_a_job_that_waited_long_enough_is_claimed_again(database: Database) -> None:
    add_job(database)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        ClaimRepository(session).retry_later(job.id, 1, {}, delay_seconds=-1)
    assert claim(database) is not None


def test_a_retryable_error_in_the_last_attempt_is_death(database: Database) -> None:
    add_job(database, max_attempts=1)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        assert ClaimRepository(session).retry_later(job.id, 1, {"code": "unavailable"}, 0).state is JobState.DEAD


def test_a_job_that_lost_every_worker_is_dead(database: Database) -> None:
    add_job(database, max_attempts=2)
    for _ in range(2):
        job = claim(database)
        assert job is not None
        run_out(database, job)
    assert claim(database) is None
    with database.write() as session:
        assert [ended.state for ended in ClaimRepository(session).end_abandoned()] == [JobState.DEAD]
    ended = job_now(database, job)
    assert ended.finished_at is not None
    assert ended.error is not None
    assert ended.error["code"] == "dead"


def test_ending_the_abandoned_spares_whoever_still_has_a_lease(database: Database) -> None:
    add_job(database, max_attempts=1)
    job = claim(database)
    with database.write() as session:
        assert ClaimRepository(session).end_abandoned() == []
    assert job is not None
    assert job_now(database, job).state is JobState.RUNNING


def test_cancelling_a_queued_job_ends_it_at_once(database: Database) -> None:
    job = add_job(database)
    with database.write() as session:
        assert JobRepository(session).cancel(job.id).state is JobState.CANCELLED
    assert claim(database) is None


def test_cancelling_a_running_job_asks_its_worker(database: Database) -> None:
    add_job(database)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        assert JobRepository(session).cancel(job.id).state is JobState.RUNNING
    with database.write() as session:
        assert ClaimRepository(session).heartbeat(job.id, 1) is True
    with database.read() as session:
        assert ClaimRepository(session).cancel_requested(job.id, 1) is True


def test_a_cancelled_job_whose_worker_died_is_not_run_again(database: Database) -> None:
    add_job(database)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        JobRepository(session).cancel(job.id)
    run_out(database, job)
    assert claim(database) is None
    with database.write() as session:
        ClaimRepository(session).end_abandoned()
    assert job_now(database, job).state is JobState.CANCELLED


def test_a_finished_job_cannot_be_cancelled(database: Database) -> None:
    job = add_job(database)
    with database.write() as session:
        JobRepository(session).cancel(job.id)
    with database.write() as session, refused("job-state-forbids", state="cancelled", wanted="cancelled"):
        JobRepository(session).cancel(job.id)


def test_a_retry_gives_fresh_attempts_and_forgets_the_error(database: Database) -> None:
    add_job(database, max_attempts=1)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        ClaimRepository(session).finish(job.id, 1, JobState.FAILED, error={"code": "input"})
    with database.write() as session:
        again = JobRepository(session).retry(job.id)
    assert (again.state, again.error, again.finished_at, again.max_attempts) == (JobState.QUEUED, None, None, 4)
    claimed = claim(database)
    assert claimed is not None
    assert claimed.attempt == 2


@pytest.mark.parametrize("running", [False, True])
def test_an_open_job_needs_no_retry(database: Database, running: bool) -> None:
    job = add_job(database)
    if running:
        claim(database)
    with database.write() as session, pytest.raises(ConflictError):
        JobRepository(session).retry(job.id)


def test_a_dead_process_loses_its_lease_and_no_other_does(database: Database) -> None:
    add_job(database), add_job(database)
    one, two = claim(database, "w1"), claim(database, "w2")
    assert one is not None
    assert two is not None
    with database.write() as session:
        assert ClaimRepository(session).expire("w1", 999) == []
        assert [job.id for job in ClaimRepository(session).expire("w1", 1234)] == [one.id]
    again = claim(database, "w3")
    assert again is not None
    assert again.id == one.id
    assert claim(database, "w3") is None


def test_events_tell_the_story_in_order_and_since(database: Database) -> None:
    add_job(database)
    job = claim(database)
    assert job is not None
    with database.write() as session:
        claims = ClaimRepository(session)
        claims.append(job.id, 1, "stage_started", "probe started", stage=Stage.PROBE)
        claims.append(job.id, 1, "stage_finished", "done", stage=Stage.PROBE, seconds=1.5, numbers={"loss": 0.25})
    assert job_now(database, job).stage is Stage.PROBE
    with database.read() as session:
        events = EventRepository(session).list(job.id)
        later = EventRepository(session).list(job.id, since=events[1].id)
    assert [event.message for event in events] == ["queued", "running", "probe started", "done"]
    assert [event.id for event in later] == [event.id for event in events[2:]]
    assert (events[-1].seconds, events[-1].numbers, events[-1].stage) == (1.5, {"loss": 0.25}, Stage.PROBE)
    assert JobEventDocument.of(events[-1]).at.endswith("Z")


def test_listing_filters_and_pages_from_the_newest(database: Database) -> None:
    jobs = [
        add_job(database, queue=queue, owner=owner) for queue, owner in (("a", "x"), ("b", "x"), ("a", "y"), ("a", "x"))
    ]
    with database.write() as session:
        JobRepository(session).cancel(jobs[3].id)
    ids = {job.id: place for place, job in enumerate(jobs)}

    def places(after: str | None = None, limit: int = 9, **filters: Any) -> list[int]:
        return [ids[job.id] for job in listed_jobs(database, JobSearch(**filters), after, limit)[0]]

    assert places() == [3, 2, 1, 0]
    assert places(queue="a", states=(JobState.QUEUED,)) == [2, 0]
    assert places(owner="x", limit=2) == [3, 1]
    assert places(after=jobs[2].id) == [1, 0]
    assert places(task="nobody") == []
    with database.read() as session:
        listed = JobRepository(session).list(states=[JobState.QUEUED], task=jobs[0].spec.task, limit=2)
    assert [ids[job.id] for job in listed] == [2, 1]


def test_queues_say_how_much_waits_and_for_how_long(database: Database) -> None:
    add_job(database, queue="gpu"), add_job(database, queue="gpu")
    claim(database, queues=("gpu",))
    with database.write() as session:
        QueueRepository(session).set_paused("cpu", True)
        status = {queue.name: queue for queue in QueueRepository(session).list()}
    assert set(status) == {"cpu", "default", "gpu"}
    assert (status["gpu"].queued, status["gpu"].running, status["cpu"].paused) == (1, 1, True)
    assert status["gpu"].oldest_queued_seconds is not None
    assert 0 <= status["gpu"].oldest_queued_seconds < 5
    assert status["default"].oldest_queued_seconds is None


def test_reading_cannot_write(database: Database) -> None:
    with pytest.raises(Exception, match=r"read-?\s?only"), database.read() as session:
        JobRepository(session).add(sample_spec())
