"""Shards of a job: claimed once, fenced, given anew, and counted; on SQLite and PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select, update
from support.registry_samples import sample_spec

from onboard.domain.bulk import MAX_SHARD_ATTEMPTS, ShardClaim, ShardsStanding
from onboard.domain.job import MAX_ATTEMPTS, Job, JobState
from onboard.domain.worker import WorkerState
from onboard.errors import CancelledError, FencedError
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now, read_clock
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.shards import ShardRepository
from onboard.registry.tables import JobShardRow
from onboard.registry.workers import QueueRepository, WorkerRepository
from onboard.testing import MemoryDoorbell
from workers.reconciler import reconcile

ROWS = [10, 10, 10, 4]
ASKED: dict[str, Any] = {"bulk": {"output": "/out"}}


def start(database: Database, priority: int = 0, worker: str = "w1") -> Job:
    """A job over files that `worker` runs, with its shards."""
    with database.write() as session:
        JobRepository(session).add(sample_spec(**ASKED), priority=priority)
        job = ClaimRepository(session).claim(worker, ["default"], pid=1)
        assert job is not None
        ShardRepository(session).add(job.id, ROWS, done={3})
    return job


@pytest.fixture
def job(database: Database) -> Job:
    return start(database)


def claim(database: Database, job: Job, worker: str = "w1") -> ShardClaim | None:
    with database.write() as session:
        return ShardRepository(session).claim(job.id, worker, pid=1)


def claimed(database: Database, job: Job, worker: str = "w1") -> ShardClaim:
    shard = claim(database, job, worker)
    assert shard is not None
    return shard


def standing(database: Database, job: Job) -> ShardsStanding:
    with database.read() as session:
        shards = ShardRepository(session).standing(job.id, None, read_clock(session))
    assert shards is not None
    return shards


def let_expire(database: Database) -> None:
    with database.write() as session:
        held = JobShardRow.lease_expires_at.is_not(None)
        session.execute(update(JobShardRow).where(held).values(lease_expires_at=database_now() - 1))


def test_every_shard_is_claimed_once_however_many_ask(database: Database, job: Job) -> None:
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda place: claim(database, job, f"w{place}"), range(8)))
    assert sorted(shard.number for shard in claims if shard) == [0, 1, 2]  # the fourth was there already


def test_who_lost_a_shard_cannot_publish_it(database: Database, job: Job) -> None:
    slow = claimed(database, job)
    let_expire(database)
    quick = claimed(database, job, "w2")
    assert (quick.number, quick.attempt) == (slow.number, slow.attempt + 1)
    with database.write() as session:
        shards = ShardRepository(session)
        for refused in (shards.hold, shards.finish, shards.extend, lambda lost: shards.fail(lost, {})):
            with pytest.raises(FencedError):
                refused(slow)
        shards.give_back(slow)  # which is nothing to it
        shards.hold(quick)
        shards.finish(quick)
        with pytest.raises(FencedError):  # a shard is finished once
            shards.finish(quick)
    assert standing(database, job).shards_done == 2


def test_a_cancelled_job_takes_no_more_answers(database: Database, job: Job) -> None:
    shard = claimed(database, job)
    with database.write() as session:
        JobRepository(session).cancel(job.id)
        assert ShardRepository(session).extend(shard) is True
        with pytest.raises(CancelledError):
            ShardRepository(session).hold(shard)
    assert claim(database, job) is None


def test_a_shard_that_costs_too_many_workers_is_given_to_nobody_until_the_job_is_tried_again(
    database: Database, job: Job
) -> None:
    with database.write() as session:
        for shard in filter(None, (ShardRepository(session).claim(job.id, "w1", pid=1) for _ in range(3))):
            if shard.number:
                ShardRepository(session).finish(shard)
    for _ in range(MAX_SHARD_ATTEMPTS - 1):
        assert standing(database, job).lost is None
        let_expire(database)
        claimed(database, job, "w2")
    assert standing(database, job).lost is None  # somebody is at it
    let_expire(database)
    assert claim(database, job) is None
    assert standing(database, job).lost == 0
    with database.write() as session:
        ClaimRepository(session).finish(job.id, job.attempt, JobState.FAILED)
        JobRepository(session).retry(job.id)
        assert ClaimRepository(session).claim("w1", ["default"]) is not None
    assert claimed(database, job).attempt == MAX_SHARD_ATTEMPTS + 1


def test_who_leaves_or_is_known_to_be_dead_gives_its_shard_to_others_at_once(database: Database, job: Job) -> None:
    first = claimed(database, job)
    with database.write() as session:
        ShardRepository(session).expire("w1", 2)  # another process
        assert ShardRepository(session).held("w1") == [1]
        assert ShardRepository(session).helps("w1")
        ShardRepository(session).expire("w1", 1)
        assert not ShardRepository(session).helps("w1")
    second = claimed(database, job)
    assert (second.number, second.attempt) == (first.number, 2)
    with database.write() as session:
        ShardRepository(session).give_back_all("w1")
        ShardRepository(session).give_back(claimed_again := ShardRepository(session).claim(job.id, "w1") or second)
    assert claimed_again.attempt == 3
    with database.write() as session:
        WorkerRepository(session).enter("w9", WorkerState.DRAINING, queues=["default"], host="h", device="cpu")
        assert ShardRepository(session).claim(job.id, "w9") is None
        assert ShardRepository(session).leaves("w9")


def test_helpers_take_shards_of_the_most_urgent_job_of_their_queues_that_runs(database: Database, job: Job) -> None:
    urgent = start(database, priority=5, worker="w2")
    with database.write() as session:
        shards = ShardRepository(session)
        assert shards.queues() == {"default"}
        assert shards.claim_any("w3", ["other"]) is None
        taken = [shards.claim_any("w3", ["default", "other"]) for _ in range(4)]
        assert [shard.job for shard in taken if shard] == [urgent.id] * 3 + [job.id]
        assert {worker.name for worker in WorkerRepository(session).list()} == set()
        assert shards.holders()["w3"] in (urgent.id, job.id)
        QueueRepository(session).set_paused("default", True)
        assert shards.claim_any("w3", ["default"]) is None
        assert shards.claim(job.id, "w1") is not None  # what runs goes on


def test_everybody_who_has_nothing_to_do_is_rung_for_shards_though_a_job_waits_too(
    database: Database, job: Job
) -> None:
    with database.write() as session:
        JobRepository(session).add(sample_spec())
        for name in ("w8", "w9"):
            WorkerRepository(session).enter(name, WorkerState.RUNNING, queues=["default"], host="h", device="cpu")
    bells = MemoryDoorbell()
    assert reconcile(database, bells, "w8", lease_seconds=60)
    assert bells.rung == {"default": 2}
    claimed(database, job, "w9")
    assert reconcile(database, bells, "w8", lease_seconds=60)
    assert bells.rung == {"default": 3}  # w9 helps by now


def test_what_is_written_counts_and_lets_the_job_be_tried_as_often_again(database: Database, job: Job) -> None:
    with database.write() as session:
        ClaimRepository(session).expire("w1", 1)
        again = ClaimRepository(session).claim("w2", ["default"], pid=1)
        assert again is not None
        assert again.counted_attempt == 2
        shards = ShardRepository(session)
        shard = shards.claim(job.id, "w2", pid=1)
        assert shard is not None
        shards.finish(shard)
        present = JobRepository(session).get(job.id)
        assert present.max_attempts - present.attempt == MAX_ATTEMPTS - 1
        seen = shards.standing(job.id, read_clock(session) - 10, read_clock(session))
    assert seen is not None
    assert (seen.rows, seen.rows_done, seen.shards_done, seen.recent_rows) == (34, 14, 2, 10)  # 4 were there already
    assert seen.left.seconds == pytest.approx(20.0, rel=0.2)
    assert seen.sentence == "14 of 34 rows, 1 a second, by 0 workers"


def test_a_heartbeat_of_the_job_extends_what_its_worker_holds(database: Database, job: Job) -> None:
    claimed(database, job)
    with database.write() as session:
        session.execute(update(JobShardRow).where(JobShardRow.number == 0).values(lease_expires_at=database_now() + 1))
        ClaimRepository(session).heartbeat(job.id, job.attempt, 1000.0)
        lease = JobShardRow.lease_expires_at - database_now()
        assert (session.scalars(select(lease).where(JobShardRow.number == 0)).one() or 0.0) > 900


def test_answers_that_are_gone_are_written_again(database: Database, job: Job) -> None:
    with database.write() as session:
        shards = ShardRepository(session)
        assert shards.written(job.id) == {3}
        shards.add(job.id, ROWS, done={1})  # they are there by now
        shards.forget(job.id, {3})
        assert shards.written(job.id) == set()
        assert shards.job_writing_to("/out") == job.id
        assert shards.job_writing_to("/other") is None
