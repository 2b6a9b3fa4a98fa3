"""Owners take turns: many jobs of one do not delay another's."""

from __future__ import annotations

from itertools import groupby

import pytest
from support.registry_samples import add_job, claim_job, register_sample_base

from onboard.domain.job import JobState
from onboard.errors import OnboardError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.job_figures import JobFigures
from onboard.registry.jobs import JobRepository


@pytest.fixture(autouse=True)
def _base(database: Database) -> None:
    register_sample_base(database)


def claimed(database: Database, count: int) -> list[str]:
    """The owners of so many jobs, in the order in which they are claimed."""
    return [str(claim_job(database, f"w{number}").owner) for number in range(count)]


def test_the_first_job_of_a_quiet_owner_is_next_however_many_another_has_waiting(database: Database) -> None:
    for number in range(50):
        add_job(database, f"many-{number}", owner="busy")
    assert claimed(database, 3) == ["busy"] * 3
    add_job(database, "one", owner="quiet")
    assert claimed(database, 2)[-1] == "quiet"  # after the one that was next already


def test_owners_with_many_jobs_alternate_and_each_keeps_its_order(database: Database) -> None:
    jobs = {owner: [add_job(database, f"{owner}-{number}", owner=owner).id for number in range(6)] for owner in "ab"}
    order = [claim_job(database, f"w{number}") for number in range(12)]
    assert [len(list(run)) for _, run in groupby(order, key=lambda job: job.owner)] == [1] * 12
    for owner, ids in jobs.items():
        assert [job.id for job in order if job.owner == owner] == ids


def test_a_more_urgent_job_is_first_whoever_has_it(database: Database) -> None:
    add_job(database, "usual", owner="quiet")
    for number in range(3):
        add_job(database, f"urgent-{number}", owner="busy", priority=5)
    assert claimed(database, 4) == ["busy", "busy", "busy", "quiet"]


def test_jobs_without_an_owner_keep_the_order_in_which_they_came(database: Database) -> None:
    ids = [add_job(database, f"t{number}").id for number in range(5)]
    assert [claim_job(database, f"w{number}").id for number in range(5)] == ids


def test_a_job_that_is_retried_waits_after_the_owners_other_jobs(database: Database) -> None:
    failed = add_job(database, "failed", owner="busy")
    running = claim_job(database)
    with database.write() as session:
        ClaimRepository(session).finish(running.id, running.attempt, JobState.FAILED, error=OnboardError("x").to_json())
    for number in range(3):
        add_job(database, f"t{number}", owner="busy")
    with database.write() as session:
        JobRepository(session).retry(failed.id)
    assert [claim_job(database, f"w{number}").spec.task for number in range(4)] == ["t0", "t1", "t2", "failed"]


def test_what_is_shown_of_the_queue_is_the_order_of_claims(database: Database) -> None:
    for number in range(4):
        add_job(database, f"many-{number}", owner="busy")
    quiet = add_job(database, "one", owner="quiet")
    with database.read() as session:
        shown = [job.id for job in JobFigures(session).queued(10)]
        assert JobFigures(session).ahead(quiet, quiet.created_at + 1) == 1
    assert [claim_job(database, f"w{number}").id for number in range(5)] == shown
    assert shown[1] == quiet.id
