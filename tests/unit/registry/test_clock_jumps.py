"""A clock that is set back leaves nobody waiting for moments that were written while it was fast."""

from __future__ import annotations

from support.registry_samples import sample_spec

from onboard.domain.job import Job, JobState
from onboard.domain.worker import WorkerState
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.tables import JobRow, LeaseRow, WorkerRow
from onboard.registry.workers import WorkerRepository

FAST = 2 * 3600.0  # seconds that the clock went ahead


def submit(database: Database) -> Job:
    with database.write() as session:
        return JobRepository(session).add(sample_spec())[0]


def shift(database: Database, row: type, column: str, seconds: float = FAST) -> None:
    """As if it had been written by a clock that was so fast."""
    with database.write() as session:
        session.query(row).update({column: getattr(row, column) + seconds})


def test_a_job_that_was_submitted_by_a_fast_clock_is_claimed_at_once(database: Database) -> None:
    job = submit(database)
    shift(database, JobRow, "not_before_at")
    with database.write() as session:
        claimed = ClaimRepository(session).claim("w1", ["default"])
    assert claimed is not None
    assert claimed.id == job.id


def test_a_job_that_is_put_off_for_a_moment_still_waits(database: Database) -> None:
    submit(database)
    shift(database, JobRow, "not_before_at", 80.0)
    with database.write() as session:
        assert ClaimRepository(session).claim("w1", ["default"]) is None


def test_a_job_whose_worker_died_while_the_clock_was_fast_is_not_lost(database: Database) -> None:
    job = submit(database)
    with database.write() as session:
        ClaimRepository(session).claim("w1", ["default"])
    with database.write() as session:
        assert ClaimRepository(session).claim("w2", ["default"]) is None
    shift(database, JobRow, "lease_expires_at")
    with database.write() as session:
        again = ClaimRepository(session).claim("w2", ["default"])
    assert again is not None
    assert (again.id, again.attempt, again.state) == (job.id, 2, JobState.RUNNING)


def test_a_lease_and_a_heartbeat_of_a_fast_clock_hold_nothing_up(database: Database) -> None:
    with database.write() as session:
        assert LeaseRepository(session).take("slot", "dead", 60.0)
        WorkerRepository(session).enter("dead", WorkerState.RUNNING, queues=["default"], host="h", device="cpu", pid=1)
    with database.write() as session:
        assert not LeaseRepository(session).take("slot", "w2", 60.0)
        assert WorkerRepository(session).serving("default")
    shift(database, LeaseRow, "expires_at")
    shift(database, WorkerRow, "heartbeat_at")
    with database.write() as session:
        assert LeaseRepository(session).holder("slot") is None
        assert LeaseRepository(session).take("slot", "w2", 60.0)
        assert not WorkerRepository(session).serving("default")
        WorkerRepository(session).heartbeat("dead")
        assert WorkerRepository(session).serving("default"), "it lives after all, and says so"
    with database.read() as session:
        assert session.query(WorkerRow.heartbeat_at < database_now() + 1).scalar()
