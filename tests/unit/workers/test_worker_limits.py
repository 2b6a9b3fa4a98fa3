"""What a worker's parent ends when the job's own process does not: checked with a clock of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from sqlalchemy import update
from support.registry_samples import sample_spec

from onboard.domain.job import Job, JobState
from onboard.registry import database as database_module
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.shards import ShardRepository
from onboard.registry.tables import JobRow
from workers.limits import Limits

CANCEL_SECONDS, STRAY_SECONDS = 15.0, 30.0


@dataclass
class Parent:
    """A worker's parent with one running job, and a clock that is turned by hand."""

    database: Database
    job: Job
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.limits = Limits(self.database, "w1", CANCEL_SECONDS, STRAY_SECONDS, clock=lambda: self.now)

    def look(self, after: float = 0.0, bell: str | None = "one") -> bool:
        """Look again, some seconds later."""
        self.now += after
        return self.limits.look(bell)

    def state(self) -> JobState:
        with self.database.read() as session:
            return JobRepository(session).get(self.job.id).state

    def ask_to_cancel(self) -> None:
        with self.database.write() as session:
            JobRepository(session).cancel(self.job.id)

    def change(self, **values: object) -> None:
        with self.database.write() as session:
            session.execute(update(JobRow).values(**values))

    def end(self) -> None:
        """The job ends by itself."""
        with self.database.write() as session:
            ClaimRepository(session).finish(self.job.id, self.job.attempt, JobState.SUCCEEDED)


@pytest.fixture
def parent(sqlite_url: str) -> Iterator[Parent]:
    database = Database(sqlite_url)
    with database.write() as session:
        JobRepository(session).add(sample_spec(), time_limit_seconds=60)
        job = ClaimRepository(session).claim("w1", ["default"], pid=1)
    assert job is not None
    yield Parent(database, job)
    database.dispose()


def test_a_job_within_its_limits_is_left_alone(parent: Parent) -> None:
    assert [parent.look(after=100) for _ in range(5)] == [False] * 5
    assert parent.state() is JobState.RUNNING


def test_a_job_over_its_limit_fails_at_once_and_its_process_is_killed_when_it_goes_on(parent: Parent) -> None:
    parent.change(deadline_at=0.0)
    assert not parent.look()
    assert parent.state() is JobState.FAILED
    assert not parent.look(after=STRAY_SECONDS - 1)
    assert parent.look(after=1)
    assert not parent.look(after=1000)  # whatever Celery still thinks: the next process is starting


def test_a_process_that_helps_with_anothers_job_is_no_stray_until_that_ends(parent: Parent) -> None:
    with parent.database.write() as session:
        ShardRepository(session).add(parent.job.id, [10], done=())
        assert ShardRepository(session).claim(parent.job.id, "w2", pid=2) is not None
    parent.limits.worker = "w2"
    assert [parent.look(after=STRAY_SECONDS) for _ in range(3)] == [False] * 3
    parent.ask_to_cancel()
    assert not parent.look(after=STRAY_SECONDS)
    assert parent.look(after=STRAY_SECONDS)  # it was to stop, and goes on


def test_a_process_that_stops_by_itself_is_not_killed(parent: Parent) -> None:
    parent.change(deadline_at=0.0)
    assert not parent.look()
    assert not parent.look(after=STRAY_SECONDS - 1, bell=None)
    assert not parent.look(after=STRAY_SECONDS)  # the next bell: counted anew
    assert parent.look(after=STRAY_SECONDS)


def test_bells_that_end_soon_are_no_stray_however_many_follow_one_another(parent: Parent) -> None:
    parent.end()
    assert not any(parent.look(after=STRAY_SECONDS / 2, bell=f"bell {number}") for number in range(6))


def test_a_process_that_lost_its_job_to_another_worker_is_killed_when_it_goes_on(parent: Parent) -> None:
    parent.change(worker="w2", attempt=2)
    assert not parent.look()
    assert parent.look(after=STRAY_SECONDS)
    assert parent.state() is JobState.RUNNING


def test_a_process_whose_lease_ran_out_is_killed_though_nobody_took_its_job(parent: Parent) -> None:
    parent.change(lease_expires_at=0.0)
    assert not parent.look()
    assert parent.look(after=STRAY_SECONDS)
    assert parent.state() is JobState.RUNNING  # for the next attempt


def test_a_cancelled_job_that_listens_is_not_killed(parent: Parent) -> None:
    parent.ask_to_cancel()
    assert not parent.look()
    assert not parent.look(after=CANCEL_SECONDS - 1)
    parent.end()
    assert not parent.look(after=2, bell=None)
    assert parent.state() is JobState.SUCCEEDED


def test_a_cancelled_job_that_does_not_listen_is_cancelled_and_its_process_killed(parent: Parent) -> None:
    assert not parent.look()
    parent.ask_to_cancel()
    assert not parent.look(after=1000)  # asked for just now, however long the job has run
    assert not parent.look(after=CANCEL_SECONDS - 1)
    assert parent.look(after=1)
    assert parent.state() is JobState.CANCELLED
    assert not parent.look(after=1000)
    assert not parent.look(after=1, bell=None)
    assert not parent.look()
    assert parent.look(after=STRAY_SECONDS)  # another one that went astray


@pytest.mark.parametrize("what", ["lease", "limit", "cancel"])
def test_a_process_that_hangs_with_the_databases_lock_is_killed(
    parent: Parent, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "cancel":
        parent.ask_to_cancel()
    else:
        parent.change(**{"lease": {"lease_expires_at": 0.0}, "limit": {"deadline_at": 0.0}}[what])
    hanging = sqlite3.connect(parent.database.engine.url.database or "", isolation_level=None)
    hanging.execute("BEGIN IMMEDIATE")
    parent.database.dispose()
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.05)
    waiting_little = Database(parent.database.url)
    parent.limits.database = waiting_little
    assert not parent.look()
    assert parent.look(after=STRAY_SECONDS)
    waiting_little.dispose()
    hanging.close()


def test_an_idle_worker_asks_the_database_nothing(parent: Parent) -> None:
    parent.database.dispose()
    parent.limits.database = None  # type: ignore[assignment]  # whoever asks now fails
    assert not parent.look(bell=None)
