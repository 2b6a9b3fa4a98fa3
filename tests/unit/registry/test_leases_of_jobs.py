"""A job's other leases (an output folder) last as long as the job runs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from support.registry_samples import BLOCKED_SECONDS, sample_spec

from onboard.domain.job import Job, JobState
from onboard.errors import FencedError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository

OUTPUT = "output s3://bucket/answers"


@pytest.fixture
def job(database: Database) -> Job:
    """A running job that holds the folder for a second."""
    with database.write() as session:
        JobRepository(session).add(sample_spec())
        job = ClaimRepository(session).claim("w1", ["default"], pid=7)
        assert job is not None
        assert LeaseRepository(session).take(OUTPUT, job.id, 60)
    return job


def holder(database: Database) -> str | None:
    with database.read() as session:
        return LeaseRepository(session).holder(OUTPUT)


def test_a_heartbeat_extends_what_the_job_holds(database: Database, job: Job) -> None:
    with database.write() as session:
        LeaseRepository(session).take(OUTPUT, job.id, 0.0)
    assert holder(database) is None
    with database.write() as session:
        LeaseRepository(session).take(OUTPUT, job.id, 5.0)
        ClaimRepository(session).heartbeat(job.id, job.attempt, 3600)
    with database.write() as session:
        assert not LeaseRepository(session).take(OUTPUT, "other", 60)
        ends = LeaseRepository(session).holder(OUTPUT)
    assert ends == job.id


End = Callable[[ClaimRepository, Job], object]
ENDS: dict[str, End] = {
    "it succeeds": lambda claims, job: claims.finish(job.id, job.attempt, JobState.SUCCEEDED, result={}),
    "it fails": lambda claims, job: claims.finish(job.id, job.attempt, JobState.FAILED, error={}),
    "its worker leaves": lambda claims, job: claims.release(job.id, job.attempt),
    "it is tried again later": lambda claims, job: claims.retry_later(job.id, job.attempt, {}, 0.0),
    "it is put off": lambda claims, job: claims.put_off(job.id, job.attempt, {"message": "taken"}, 5.0),
    "its process died": lambda claims, job: claims.expire("w1", 7),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_the_folder_is_free_as_soon_as(database: Database, job: Job, end: End) -> None:
    assert holder(database) == job.id
    with database.write() as session:
        end(ClaimRepository(session), job)
    assert holder(database) is None


def test_an_attempt_that_lost_its_job_neither_extends_nor_frees_the_folder(database: Database, job: Job) -> None:
    for late in (
        lambda claims: claims.heartbeat(job.id, job.attempt + 1),
        lambda claims: claims.finish(job.id, job.attempt + 1, JobState.FAILED),
    ):
        with pytest.raises(FencedError), database.write() as session:
            late(ClaimRepository(session))
    assert holder(database) == job.id


def test_a_job_that_is_put_off_waits_and_has_used_up_no_attempt(database: Database, job: Job) -> None:
    error = {"code": "slot_taken", "message": "Job b rebuilds an earlier version."}
    for _ in range(5):
        with database.write() as session:
            claims = ClaimRepository(session)
            job = claims.put_off(job.id, job.attempt, error, 5.0)
            assert job.state is JobState.QUEUED
            assert claims.claim("w1", ["default"]) is None
            job = claims.put_off(_claimed_at_once(claims, session, job).id, job.attempt + 1, error, -1.0)
            again = claims.claim("w1", ["default"])
            assert again is not None
            job = again
    assert job.counted_attempt == 1
    assert not job.attempts_used_up
    assert job.error == error


def _claimed_at_once(claims: ClaimRepository, session: object, job: Job) -> Job:
    from sqlalchemy import text
    from sqlalchemy.orm import Session

    assert isinstance(session, Session)
    session.execute(text("UPDATE jobs SET not_before_at = 0 WHERE id = :id"), {"id": job.id})
    claimed = claims.claim("w1", ["default"])
    assert claimed is not None
    return claimed


@pytest.mark.parametrize("write", ["an event", "a version"])
def test_what_waits_for_the_end_of_an_attempt_is_fenced_by_it(database: Database, job: Job, write: str) -> None:
    def late() -> None:
        with database.write() as session:
            claims = ClaimRepository(session)
            if write == "an event":
                claims.append(job.id, job.attempt, "note", "late")
            else:
                claims.hold(job.id, job.attempt)

    with ThreadPoolExecutor(1) as pool:
        with database.write() as session:
            ClaimRepository(session).finish(job.id, job.attempt, JobState.FAILED, error={})
            waits = pool.submit(late)
            assert not wait([waits], BLOCKED_SECONDS).done
        with pytest.raises(FencedError):
            waits.result()


def test_an_end_waits_for_whoever_holds_the_attempt(database: Database, job: Job) -> None:
    def end() -> None:
        with database.write() as session:
            ClaimRepository(session).finish(job.id, job.attempt, JobState.FAILED, error={})

    with ThreadPoolExecutor(1) as pool:
        with database.write() as session:
            assert ClaimRepository(session).hold(job.id, job.attempt).id == job.id
            waits = pool.submit(end)
            assert not wait([waits], BLOCKED_SECONDS).done
        waits.result()
