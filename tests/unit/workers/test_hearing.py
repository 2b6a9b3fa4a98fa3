"""Whether a worker notices that it has turned deaf, and only then: checked with a clock of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from support.registry_samples import sample_spec

from onboard.broker.bells import Edge
from onboard.domain.job import Job, JobState
from onboard.domain.worker import WorkerState
from onboard.errors import UnavailableError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.workers import QueueRepository, WorkerRepository
from onboard.settings import Settings
from workers.hearing import IN_VAIN_SECONDS, LOADING_SECONDS, Hearing
from workers.plan import WorkerPlan
from workers.renewal import arguments

DEAF = 10.0


@dataclass
class Broker:
    """Counts what is rung for; away when told so."""

    rung: list[str] = field(default_factory=list)
    away: bool = False

    def ring(self, queue: str) -> None:
        if self.away:
            raise UnavailableError("The broker cannot be reached.")
        self.rung.append(queue)


@dataclass
class Parent:
    """A worker's parent with a clock that is turned by hand."""

    database: Database
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.broker = Broker()
        self.plan = WorkerPlan(Settings(), "w1", deaf_seconds=DEAF)
        self.hearing = Hearing(self.database, self.plan, self.broker, messages=Edge(), clock=lambda: self.now)
        self.enter(WorkerState.RUNNING)

    def enter(self, state: WorkerState, pid: int = 7) -> None:
        with self.database.write() as session:
            WorkerRepository(session).enter(
                "w1", state, queues=["default"], host="h", device="cpu", pid=pid, facts=self.hearing.facts()
            )

    def submit(self, queue: str = "default") -> Job:
        with self.database.write() as session:
            return JobRepository(session).add(sample_spec(), queue=queue)[0]

    def look(self, after: float = 0.0, busy: bool = False) -> bool:
        self.now += after
        return self.hearing.look(busy)


@pytest.fixture
def parent(sqlite_url: str) -> Iterator[Parent]:
    database = Database(sqlite_url)
    yield Parent(database)
    database.dispose()


def test_a_free_worker_beside_a_waiting_job_rings_for_itself_and_is_deaf_if_that_does_not_help(parent: Parent) -> None:
    parent.submit()
    assert not parent.look()
    assert parent.broker.rung == ["default"]
    assert not parent.look(after=DEAF - 1)
    assert parent.hearing.facts()["deaf_seconds"] == 0
    assert parent.look(after=1)
    assert parent.hearing.facts()["deaf_seconds"] == DEAF


def test_a_worker_that_is_busy_or_has_nothing_to_do_is_not_deaf(parent: Parent) -> None:
    assert not parent.look()
    parent.submit("other")
    assert not parent.look(after=DEAF)
    job = parent.submit()
    assert not parent.look()
    assert not parent.look(after=DEAF, busy=True)
    assert not parent.look(after=1)
    with parent.database.write() as session:
        assert ClaimRepository(session).claim("w1", ["default"]) is not None
    parent.submit()
    assert not parent.look(after=DEAF)
    with parent.database.write() as session:
        ClaimRepository(session).finish(job.id, 1, JobState.SUCCEEDED)
    assert not parent.look(after=DEAF), "it has worked a moment ago"
    assert parent.broker.rung == ["default"] * 2


def test_a_paused_queue_and_a_draining_worker_are_not_rung_for(parent: Parent) -> None:
    parent.submit()
    with parent.database.write() as session:
        QueueRepository(session).set_paused("default", True)
    assert not parent.look()
    assert not parent.look(after=DEAF)
    with parent.database.write() as session:
        QueueRepository(session).set_paused("default", False)
        WorkerRepository(session).drain("w1")
    assert not parent.look()
    assert not parent.look(after=DEAF)
    assert parent.broker.rung == []


def test_a_broker_that_is_away_is_no_deafness(parent: Parent) -> None:
    parent.submit()
    parent.look()
    parent.broker.away = True
    with pytest.raises(UnavailableError):
        parent.look(after=DEAF)
    parent.broker.away = False
    assert not parent.look(after=1)
    assert parent.look(after=DEAF)


def test_a_process_that_still_loads_is_not_taken_for_deaf(parent: Parent) -> None:
    parent.submit()
    parent.enter(WorkerState.STARTING)
    assert not parent.look()
    assert not parent.look(after=LOADING_SECONDS - 1)
    with parent.database.write() as session:
        WorkerRepository(session).ready("w1")
    assert parent.look(after=1)
    parent.hearing.process_was_replaced()
    assert not parent.look()
    assert not parent.look(after=DEAF)
    assert parent.look(after=IN_VAIN_SECONDS)


def test_whoever_began_anew_in_vain_waits_longer_until_it_has_worked(parent: Parent) -> None:
    parent.hearing.renewals = 2
    parent.hearing.messages.drop("it is no JSON")
    parent.enter(WorkerState.RUNNING)
    parent.hearing = Hearing(parent.database, parent.plan, parent.broker, messages=Edge(), clock=lambda: parent.now)
    parent.hearing.go_on(pid=8)
    assert parent.hearing.renewals == 0, "another process of that name"
    parent.hearing.go_on(pid=7)
    assert (parent.hearing.renewals, parent.hearing.facts()["dropped_messages"]) == (2, 1)
    parent.submit()
    assert not parent.look()
    assert not parent.look(after=DEAF)
    assert parent.look(after=IN_VAIN_SECONDS)
    assert not parent.look(busy=True)
    assert not parent.look()
    assert parent.look(after=DEAF)


def test_what_is_started_again_is_the_same_program_under_the_same_name() -> None:
    again = arguments(["python", "-m", "workers", "--queue", "gpu"], "w1")
    assert again == [sys.executable, "-m", "workers", "--queue", "gpu", "--name", "w1"]
