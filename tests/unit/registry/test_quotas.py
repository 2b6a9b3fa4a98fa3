"""Owners have as many open jobs and stored bytes as their quota allows, however many ask at once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.refusals import refused
from support.registry_samples import add_job, claim_job, job_now, register_sample_base

from onboard.domain.job import Job, JobState
from onboard.domain.quota import Use
from onboard.errors import QuotaError
from onboard.operations.access import create_token, list_tokens, quota_of, revoke_token, set_quota
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.quotas import QuotaRepository

LETTER, WORD, BOOK = (f"sha256:{digit * 64}" for digit in "def")
SIZES = {LETTER: 100, WORD: 30, BOOK: 500}


@pytest.fixture(autouse=True)
def _base(database: Database) -> None:
    register_sample_base(database)
    with database.write() as session:
        for digest, size in SIZES.items():
            ArtifactRepository(session).add(digest, "snapshot", size)


def limited(database: Database, owner: str = "shop", **limits: int | None) -> None:
    create_token(database, owner, ["submit"], limits=limits)


def use(database: Database, owner: str = "shop") -> Use:
    found = quota_of(database, owner)
    assert found is not None
    return found


def submit(database: Database, *artifacts: str, owner: str | None = "shop", key: str | None = None) -> Job:
    return add_job(database, owner=owner, key=key, artifacts=artifacts)


def end(database: Database, state: JobState = JobState.FAILED) -> Job:
    job = claim_job(database)
    with database.write() as session:
        ClaimRepository(session).finish(job.id, job.attempt, state)
    return job


def test_queued_and_running_jobs_count_and_ended_ones_make_room(database: Database) -> None:
    limited(database, max_jobs=2)
    submit(database)
    submit(database)
    running = claim_job(database)
    facts = {"max_jobs": 2, "jobs": 2, "jobs_left": 0, "max_bytes": None, "bytes": None, "bytes_left": None}
    with refused("quota-jobs", code="quota", owner="shop", **facts):
        submit(database)
    assert (use(database).queued, use(database).running) == (1, 1)
    with database.write() as session:
        ClaimRepository(session).finish(running.id, running.attempt, JobState.FAILED)
    assert submit(database).owner == "shop"


def test_a_refused_job_leaves_nothing_behind(database: Database) -> None:
    limited(database, max_jobs=0, max_bytes=1000)
    with refused("quota-jobs", jobs=0, jobs_left=0):
        submit(database, LETTER)
    assert use(database) == Use("shop", max_jobs=0, bytes=0, max_bytes=1000)
    with database.read() as session:
        assert JobRepository(session).list() == []


def test_who_has_no_quota_submits_as_before_and_counts_for_nobody_else(database: Database) -> None:
    limited(database, max_jobs=1)
    for owner in ("other", "other", None, None, "shop"):
        submit(database, owner=owner)
    with refused("quota-jobs"):
        submit(database)


def test_of_many_at_the_last_place_one_gets_it(database: Database) -> None:
    limited(database, max_jobs=3, max_bytes=600)
    submit(database)
    submit(database)
    start = threading.Barrier(6)

    def attempt(number: int) -> bool:
        start.wait()
        try:
            submit(database, key=f"k{number}")
        except QuotaError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(attempt, range(6))) == [False] * 5 + [True]
    assert use(database).jobs == 3


def test_of_many_that_want_the_last_bytes_as_many_get_them_as_there_is_room_for(database: Database) -> None:
    limited(database, max_bytes=530)
    start = threading.Barrier(3)

    def attempt(digest: str) -> str | None:
        start.wait()
        try:
            submit(database, digest)
        except QuotaError:
            return None
        return digest

    with ThreadPoolExecutor(3) as pool:
        stored = {digest for digest in pool.map(attempt, SIZES) if digest is not None}
    assert use(database).bytes == sum(SIZES[digest] for digest in stored) <= 530
    assert len(stored) >= 1


def test_the_same_key_again_is_the_same_job_even_when_no_place_is_left(database: Database) -> None:
    limited(database, max_jobs=1, max_bytes=100)
    job = submit(database, LETTER, key="once")
    assert submit(database, LETTER, key="once").id == job.id


def test_bytes_count_once_however_often_they_are_used_and_for_each_owner(database: Database) -> None:
    limited(database, max_bytes=1000)
    limited(database, "lab", max_bytes=1000)
    submit(database, LETTER, WORD)
    submit(database, LETTER, WORD)
    submit(database, LETTER, owner="lab")
    assert (use(database).bytes, use(database, "lab").bytes) == (130, 100)


def test_a_job_whose_bytes_do_not_fit_is_refused_with_what_is_left(database: Database) -> None:
    limited(database, max_bytes=600)
    submit(database, LETTER)
    with refused("quota-bytes", needed_bytes=530, bytes=100, bytes_left=500, max_bytes=600, jobs_left=None):
        submit(database, LETTER, WORD, BOOK)
    submit(database, BOOK)  # exactly as many as are left
    with refused("quota-bytes", needed_bytes=0, bytes_left=0):
        submit(database)  # its version would be stored, too


def test_an_early_look_refuses_what_the_transaction_would_refuse(database: Database) -> None:
    limited(database, max_jobs=1, max_bytes=150)
    with database.read() as session:
        quotas = QuotaRepository(session)
        quotas.require_room("shop", {LETTER: 100, WORD: 30})
        quotas.require_room("nobody", {BOOK: 10**12})
        with refused("quota-bytes", needed_bytes=600, bytes_left=150):
            quotas.require_room("shop", {LETTER: 100, BOOK: 500})
    submit(database, LETTER)
    with database.read() as session, refused("quota-jobs"):
        QuotaRepository(session).require_room("shop")
    with database.read() as session:
        QuotaRepository(session).require_room("shop", {LETTER: 100, WORD: 30}, jobs=0)


def test_what_a_job_published_counts_for_its_owner_whatever_the_limit(database: Database) -> None:
    limited(database, max_bytes=120)
    job = submit(database, LETTER)
    with database.write() as session:
        QuotaRepository(session).charge_job(job.id, [BOOK])
    assert (use(database).bytes, use(database).bytes_left) == (600, 0)


def test_collected_artifacts_do_not_count_any_more(database: Database) -> None:
    limited(database, max_bytes=1000)
    submit(database, LETTER, BOOK)
    with database.write() as session:
        assert {one.digest for one in ArtifactRepository(session).collect(-1, 10, among=[BOOK])} == {BOOK}
    assert use(database).bytes == 100


def test_a_retry_is_a_job_of_its_owner_whoever_asks(database: Database) -> None:
    limited(database, max_jobs=1)
    submit(database)
    failed = end(database)
    submit(database)
    with refused("quota-jobs", owner="shop"), database.write() as session:
        JobRepository(session).retry(failed.id)
    assert job_now(database, failed).state is JobState.FAILED
    end(database)
    with database.write() as session:
        assert JobRepository(session).retry(failed.id).state is JobState.QUEUED


def test_limits_belong_to_the_name_so_another_token_does_not_escape_them(database: Database) -> None:
    limited(database, max_jobs=1, max_bytes=70)
    old = list_tokens(database)[0]
    new, _ = create_token(database, "shop", ["submit"])
    assert (new.max_jobs, new.max_bytes) == (1, 70)
    assert revoke_token(database, old.id).max_jobs == 1
    assert [(token.max_jobs, token.max_bytes) for token in list_tokens(database)] == [(1, 70)]
    create_token(database, "shop", ["submit"], limits={"max_jobs": 5, "max_bytes": None})
    assert (use(database).max_jobs, use(database).max_bytes) == (5, 70)


def test_limits_are_changed_one_by_one_and_lifted(database: Database) -> None:
    limited(database, max_jobs=1, max_bytes=70)
    assert set_quota(database, "shop", {"max_bytes": 90}) == Use("shop", max_jobs=1, bytes=0, max_bytes=90)
    assert set_quota(database, "shop", {"max_jobs": None}) == Use("shop", bytes=0, max_bytes=90)
    assert set_quota(database, "shop", {"max_bytes": None}) == Use("shop")
    submit(database, BOOK)
    submit(database, BOOK)


def test_a_limit_below_what_is_used_stops_new_jobs_only(database: Database) -> None:
    limited(database)
    for _ in range(3):
        submit(database)
    assert set_quota(database, "shop", {"max_jobs": 1}).jobs_left == 0
    with refused("quota-jobs", jobs=3, jobs_left=0, max_jobs=1):
        submit(database)
    assert use(database).jobs == 3


def test_an_owner_that_does_not_exist_any_more_gets_no_limits_but_its_jobs_are_still_shown(database: Database) -> None:
    limited(database, max_jobs=5)
    submit(database)
    revoke_token(database, "shop")
    with refused("unknown-owner", owner="shop"):
        set_quota(database, "shop", {"max_jobs": 2})
    with refused("unknown-owner"):
        set_quota(database, "never", {"max_jobs": 2})
    with database.read() as session:
        assert [(one.owner, one.queued) for one in QuotaRepository(session).list()] == [("shop", 1)]
    end(database)
    with database.read() as session:
        assert QuotaRepository(session).list() == []


def test_limits_that_are_none_are_refused(database: Database) -> None:
    for limits in ({"max_jobs": -1}, {"max_bytes": -1}):
        with refused("quota-negative"):
            create_token(database, "shop", ["submit"], limits=limits)
    assert list_tokens(database) == []
    limited(database)
    with refused("quota-too-large"):
        set_quota(database, "shop", {"max_bytes": 2**53})
    with refused("quota-without-limits"):
        set_quota(database, "shop", {})


def test_owners_are_listed_with_what_they_have_and_may_have(database: Database) -> None:
    limited(database, max_bytes=1000)
    limited(database, "idle", max_jobs=7)
    submit(database, LETTER)
    submit(database, owner="free")
    submit(database, owner=None)
    claim_job(database)
    with database.read() as session:
        listed = {one.owner: one for one in QuotaRepository(session).list()}
    assert list(listed) == ["free", "idle", "shop"]
    assert listed["idle"] == Use("idle", max_jobs=7)
    assert listed["shop"] == Use("shop", 0, 1, bytes=100, max_bytes=1000)
    assert (listed["free"].queued, listed["free"].bytes) == (1, None)
