"""Time limits, and jobs of other releases, in the registry: on SQLite and on PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import text, update
from support.refusals import refused
from support.registry_samples import add_job, job_now

from onboard.domain.job import Job, JobState
from onboard.domain.release import release_name, release_number
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import JobRow
from onboard.testing import MemoryDoorbell
from workers.plan import RECONCILE_SECONDS
from workers.reconciler import reconcile


def claim(database: Database, worker: str = "w1", release: int | None = None, **options: float) -> Job | None:
    with database.write() as session:
        claims = ClaimRepository(session) if release is None else ClaimRepository(session, release)
        return claims.claim(worker, ["default"], pid=1, **options)


def end_overdue(database: Database, worker: str = "w1") -> list[str]:
    with database.write() as session:
        return [job.id for job in ClaimRepository(session).end_overdue(worker)]


def let_time_pass(database: Database, seconds: float) -> None:
    with database.write() as session:
        session.execute(
            update(JobRow).values(claimed_at=JobRow.claimed_at - seconds, deadline_at=JobRow.deadline_at - seconds)
        )


def test_a_job_that_is_over_its_limit_fails_and_says_after_how_long(database: Database) -> None:
    job = add_job(database, time_limit_seconds=60)
    claim(database)
    let_time_pass(database, 59)
    assert end_overdue(database) == []
    let_time_pass(database, 2)
    assert end_overdue(database) == [job.id]
    ended = job_now(database, job)
    assert (ended.state, ended.attempt, ended.lease_expires_at) == (JobState.FAILED, 1, None)
    assert ended.error is not None
    assert ended.error["code"] == "time_limit"
    assert "longer than 60 s" in ended.error["message"]
    assert f"onboard jobs retry {job.id}" in ended.error["remedy"]
    with database.read() as session:
        assert EventRepository(session).list(job.id)[-1].message == "failed"
    assert claim(database) is None  # not retried by itself


def test_only_the_jobs_of_that_worker_with_a_limit_are_ended(database: Database) -> None:
    add_job(database, time_limit_seconds=1), add_job(database, time_limit_seconds=1), add_job(database)
    mine, others, endless = claim(database, "w1"), claim(database, "w2"), claim(database, "w1")
    let_time_pass(database, 100)
    assert mine is not None
    assert end_overdue(database, "w1") == [mine.id]
    for job in (others, endless):
        assert job is not None
        assert job_now(database, job).state is JobState.RUNNING


def test_the_reconciler_ends_what_is_over_its_limit_on_a_worker_whose_parent_is_gone(database: Database) -> None:
    job, endless = add_job(database, time_limit_seconds=60), add_job(database)
    claim(database, "gone"), claim(database, "gone")
    let_time_pass(database, 61)
    assert reconcile(database, MemoryDoorbell(), "w2", lease_seconds=60)
    assert [job_now(database, job_id).state for job_id in (job, endless)] == [JobState.FAILED, JobState.RUNNING]
    assert (job_now(database, job).error or {})["code"] == "time_limit"


def test_the_workers_default_is_for_jobs_without_a_limit_of_their_own(database: Database) -> None:
    add_job(database, time_limit_seconds=500), add_job(database)
    limits = [job.deadline_at - job.claimed_at for _ in range(2) if (job := claim(database, time_limit_seconds=9.0))]
    assert limits == [pytest.approx(500, abs=0.1), pytest.approx(9, abs=0.1)]
    with database.read() as session:
        assert [job.time_limit_seconds for job in JobRepository(session).list()] == [None, 500]


def test_every_attempt_has_the_whole_time(database: Database) -> None:
    job = add_job(database, time_limit_seconds=60)
    claim(database)
    let_time_pass(database, 50)
    with database.write() as session:
        ClaimRepository(session).retry_later(job.id, 1, {}, delay_seconds=-1)
    claim(database)
    let_time_pass(database, 50)
    assert end_overdue(database) == []


def test_attempts_that_were_handed_back_or_made_up_for_do_not_lengthen_the_back_off(database: Database) -> None:
    job = add_job(database)
    tries = []
    for _ in range(2):
        for handed_back in (True, False, True, False, False):
            running = claim(database)
            assert running is not None
            tries.append(running.counted_attempt)
            with database.write() as session:
                claims = ClaimRepository(session)
                if handed_back:
                    claims.release(job.id, running.attempt)
                else:
                    claims.retry_later(job.id, running.attempt, {}, delay_seconds=-1)
        assert job_now(database, job).state is JobState.DEAD
        with database.write() as session:
            JobRepository(session).retry(job.id)
    assert tries == [1, 1, 2, 2, 3] * 2


def test_a_retry_keeps_the_limit_or_has_a_new_one(database: Database) -> None:
    job = add_job(database, time_limit_seconds=60)
    for limit, expected in ((None, 60), (120.0, 120)):
        claim(database)
        let_time_pass(database, 1000)
        assert end_overdue(database) == [job.id]
        with database.write() as session:
            assert JobRepository(session).retry(job.id, time_limit_seconds=limit).time_limit_seconds == expected


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf")])
def test_a_limit_is_a_positive_number_of_seconds(database: Database, wrong: float) -> None:
    with refused("time-limit-invalid"):
        add_job(database, time_limit_seconds=wrong)


def test_an_older_worker_leaves_a_newer_programs_job_alone(database: Database) -> None:
    job = add_job(database, priority=9)
    older = release_number() - 1
    assert claim(database, release=older) is None
    with database.read() as session:
        claims = ClaimRepository(session, older)
        assert claims.too_new(["default"]) == release_number()
        assert claims.too_new(["other"]) is None
        assert claims.open(["default"]) == 0  # so that it may leave, and make room for a newer one
        assert claims.runnable() == {"default": 1}  # it rings for the newer ones all the same
        assert ClaimRepository(session).too_new(["default"]) is None
    claimed = claim(database, release=release_number() + 1)
    assert claimed is not None
    assert claimed.id == job.id


def test_a_newer_job_does_not_stand_in_the_way_of_others(database: Database) -> None:
    newer, ours = add_job(database, priority=9), add_job(database)
    with database.write() as session:
        session.execute(update(JobRow).where(JobRow.id == newer.id).values(needs_release=release_number() + 1))
    claimed = claim(database)
    assert claimed is not None
    assert claimed.id == ours.id
    assert job_now(database, newer).state is JobState.QUEUED


def test_a_job_from_before_releases_were_kept_is_anybodys(database: Database) -> None:
    add_job(database)
    with database.write() as session:
        session.execute(update(JobRow).values(needs_release=None))
    assert claim(database, release=0) is not None


def test_a_request_that_this_code_cannot_read_fails_alone_and_can_be_listed(database: Database) -> None:
    strange, plain = add_job(database, priority=9), add_job(database)
    with database.write() as session:
        coloured = "json_set(spec, '$.colour', 'red')"
        if not database.is_sqlite:
            coloured = "jsonb_set(spec::jsonb, '{colour}', to_jsonb('red'::text))"
        session.execute(text(f"UPDATE jobs SET spec = {coloured} WHERE id = :id"), {"id": strange.id})
    claimed = claim(database)
    assert claimed is not None
    assert claimed.id == plain.id
    failed = job_now(database, strange)
    assert failed.state is JobState.FAILED
    assert failed.error is not None
    assert "colour" in failed.error["message"]
    assert failed.spec == strange.spec


def test_releases_are_numbers_in_their_order() -> None:
    ordered = ["0.1.0", "0.1.9", "0.2.0", "0.10.0", "1.0", "1.0.1.dev3", "12.3.4"]
    numbers = [release_number(release) for release in ordered]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) == len(numbers)
    assert [release_name(number) for number in numbers] == [*ordered[:4], "1.0.0", "1.0.1", "12.3.4"]


def test_the_moment_of_the_claim_is_the_databases(database: Database) -> None:
    add_job(database, time_limit_seconds=60)
    job = claim(database)
    with database.read() as session:
        now = session.scalars(database_now().select()).one()
    assert job is not None
    assert job.claimed_at is not None
    assert 0 <= now - job.claimed_at < 5


def test_a_lost_job_is_looked_for_soon_enough_to_run_again_five_seconds_after_its_lease() -> None:
    assert RECONCILE_SECONDS <= 4
