"""Workers and leases in the registry, on SQLite and on PostgreSQL."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import update
from support.refusals import refused
from support.registry_samples import sample_spec

from onboard.domain.worker import WorkerRecord, WorkerState
from onboard.errors import NotFoundError
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.tables import JobRow, WorkerRow
from onboard.registry.workers import WorkerRepository
from onboard.testing import MemoryDoorbell
from workers.reconciler import reconcile


def enter(database: Database, name: str = "w1", state: WorkerState = WorkerState.RUNNING, pid: int | None = 7) -> None:
    with database.write() as session:
        WorkerRepository(session).enter(name, state, queues=["default"], host="h", device="cpu", pid=pid)


def only(database: Database) -> WorkerRecord:
    with database.read() as session:
        (worker,) = WorkerRepository(session).list(include_stopped=True)
        return worker


def silence(database: Database, seconds: float) -> None:
    with database.write() as session:
        session.execute(update(WorkerRow).values(heartbeat_at=database_now() - seconds))


def test_the_clock_is_the_databases_and_the_one_of_this_machine(database: Database) -> None:
    with database.read() as session:
        assert abs(session.scalars(database_now().select()).one() - time.time()) < 1


@pytest.mark.parametrize("state", [WorkerState.STARTING, WorkerState.RUNNING, WorkerState.DRAINING])
def test_a_worker_that_falls_silent_is_not_live(database: Database, state: WorkerState) -> None:
    enter(database, state=state)
    assert only(database).live
    silence(database, 61)
    assert not only(database).live
    assert only(database).shown_state == "lost"


def test_a_worker_shows_the_job_that_it_runs(database: Database) -> None:
    enter(database)
    with database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())
        ClaimRepository(session).claim("w1", ["default"])
    assert only(database).job == job.id


def test_a_worker_whose_process_died_unnoticed_is_rung_for_the_job_that_it_lost(database: Database) -> None:
    enter(database)
    with database.write() as session:
        JobRepository(session).add(sample_spec())
        ClaimRepository(session).claim("w1", ["default"], lease_seconds=60)
    bells = MemoryDoorbell()
    assert reconcile(database, bells, "w1", lease_seconds=60)
    assert not bells.rung
    with database.write() as session:
        session.execute(update(JobRow).values(lease_expires_at=database_now()))
    assert reconcile(database, bells, "w1", lease_seconds=60)
    assert bells.rung == {"default": 1}
    assert only(database).job is None


def test_a_worker_tells_how_long_ago_it_was_heard(database: Database) -> None:
    enter(database)
    silence(database, 40)
    assert 40 <= only(database).heartbeat_age_seconds < 70


def test_a_worker_says_what_its_model_is_on_until_it_starts_anew(database: Database) -> None:
    enter(database)
    with database.write() as session:
        assert WorkerRepository(session).device("w1") == ("cpu", None)
        WorkerRepository(session).runs_on("w1", "cuda:1", "GPU-1")
        assert WorkerRepository(session).device("w1") == ("cuda:1", "GPU-1")
    assert (only(database).device, only(database).gpu_uuid) == ("cuda:1", "GPU-1")
    enter(database)
    assert (only(database).device, only(database).gpu_uuid) == ("cpu", None)
    with database.write() as session, pytest.raises(NotFoundError):
        WorkerRepository(session).runs_on("nobody", "cpu", None)
    with database.read() as session, pytest.raises(NotFoundError):
        WorkerRepository(session).device("nobody")


def test_a_draining_worker_claims_nothing_and_serves_no_queue(database: Database) -> None:
    enter(database)
    with database.write() as session:
        JobRepository(session).add(sample_spec())
        assert [worker.name for worker in WorkerRepository(session).serving("default")] == ["w1"]
        assert WorkerRepository(session).serving("gpu") == []
        WorkerRepository(session).drain("w1")
        assert WorkerRepository(session).heartbeat("w1") is WorkerState.DRAINING
        assert WorkerRepository(session).serving("default") == []
        assert ClaimRepository(session).claim("w1", ["default"]) is None
        assert ClaimRepository(session).claim("w2", ["default"]) is not None


def test_only_a_live_worker_can_be_drained(database: Database) -> None:
    enter(database)
    with database.write() as session:
        WorkerRepository(session).stop("w1")
        for name in ("w1", "nobody"):
            with pytest.raises(NotFoundError):
                WorkerRepository(session).drain(name)


def test_two_processes_cannot_be_one_worker(database: Database) -> None:
    enter(database, pid=7)
    with refused("worker-name-taken"):
        enter(database, pid=8)
    silence(database, 61)
    enter(database, pid=8)


def test_a_spawned_worker_takes_over_its_own_row(database: Database) -> None:
    enter(database, state=WorkerState.STARTING, pid=None)
    with database.write() as session:
        WorkerRepository(session).spawned("w1", 7)
    assert only(database).pid == 7
    enter(database, pid=7)
    with database.write() as session:
        WorkerRepository(session).spawned("w1", 99)
    assert (only(database).state, only(database).pid) == (WorkerState.RUNNING, 7)


def test_an_idle_worker_may_leave_and_one_with_work_in_sight_may_not(database: Database) -> None:
    enter(database)
    with database.write() as session:
        job, _ = JobRepository(session).add(sample_spec())
    with database.write() as session:
        assert WorkerRepository(session).leave_if_idle("w1", ["default"]) is False
        JobRepository(session).cancel(job.id)
        assert WorkerRepository(session).leave_if_idle("w1", ["default"]) is True
    assert only(database).state is WorkerState.STOPPED


def test_a_worker_that_left_claims_nothing(database: Database) -> None:
    enter(database)
    with database.write() as session:
        WorkerRepository(session).stop("w1")
        WorkerRepository(session).begin_to_leave("w1")
        JobRepository(session).add(sample_spec())
        assert ClaimRepository(session).claim("w1", ["default"]) is None
    assert only(database).state is WorkerState.STOPPED


def test_rows_of_workers_that_left_long_ago_are_forgotten(database: Database) -> None:
    enter(database)
    with database.write() as session:
        WorkerRepository(session).forget(older_than_seconds=0)
    assert only(database).live
    silence(database, 3600)
    with database.write() as session:
        WorkerRepository(session).forget(older_than_seconds=60)
        assert WorkerRepository(session).list(include_stopped=True) == []


def test_a_lease_has_one_holder_until_it_expires(database: Database) -> None:
    with database.write() as session:
        leases = LeaseRepository(session)
        assert leases.take("reconciler", "w1", 60)
        assert leases.take("reconciler", "w1", 60)
        assert not leases.take("reconciler", "w2", 60)
        assert leases.take("tuning", "w2", 60)
        assert leases.take("reconciler", "w1", -1)
    with database.write() as session:
        leases = LeaseRepository(session)
        assert leases.take("reconciler", "w2", 60)
        leases.give_back("reconciler", "w1")
        assert not leases.take("reconciler", "w1", 60)
        leases.give_back("reconciler", "w2")
        assert leases.take("reconciler", "w1", 60)
