"""A worker that is started again after a kill -9: under its old name, at once, and its job does not wait either."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.refusals import refused
from support.registry_samples import sample_spec

from onboard.domain.worker import WorkerState
from onboard.operations.processes import host_name
from onboard.operations.webhooks.deliver import LEASE as WEBHOOKS
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.workers import WorkerRepository
from workers.recovery import recover, take_over


@pytest.fixture
def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


def enter(database: Database, name: str, pid: int, host: str | None = None) -> None:
    with database.write() as session:
        take_over(session, name)
        WorkerRepository(session).enter(
            name, WorkerState.RUNNING, queues=["default"], host=host or host_name(), device="cpu", pid=pid
        )


def give_job(database: Database, name: str, pid: int) -> None:
    with database.write() as session:
        JobRepository(session).add(sample_spec())
        assert ClaimRepository(session).claim(name, ["default"], pid=pid)


def runnable(database: Database) -> int:
    with database.read() as session:
        return sum(ClaimRepository(session).runnable().values())


def test_the_next_worker_of_a_killed_ones_name_enters_at_once_and_frees_its_job(
    database: Database, dead_pid: int
) -> None:
    enter(database, "gpu0", dead_pid)
    give_job(database, "gpu0", dead_pid)
    assert runnable(database) == 0
    enter(database, "gpu0", os.getpid())
    assert runnable(database) == 1
    with database.read() as session:
        (worker,) = WorkerRepository(session).list()
    assert (worker.live, worker.pid) == (True, os.getpid())


def test_a_killed_parents_child_that_goes_on_keeps_its_job(database: Database, dead_pid: int) -> None:
    enter(database, "gpu0", dead_pid)
    give_job(database, "gpu0", os.getpid())
    enter(database, "gpu0", os.getpid())
    assert runnable(database) == 0


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_the_name_of_a_living_worker_is_refused_as_is_one_of_another_machine(
    database: Database, dead_pid: int, where: str
) -> None:
    enter(database, "gpu0", os.getpid() if where == "here" else dead_pid, None if where == "here" else "other")
    with refused("worker-name-taken"):
        enter(database, "gpu0", os.getppid())


def test_on_one_machine_the_jobs_of_every_dead_process_are_freed(sqlite_url: str, dead_pid: int) -> None:
    database = Database(sqlite_url)
    enter(database, "w1", dead_pid)
    give_job(database, "w1", dead_pid)
    give_job(database, "w1", os.getpid())
    with database.write() as session:
        recover(session)
    assert runnable(database) == 1
    database.dispose()


@pytest.mark.parametrize("alive", [False, True])
def test_on_one_machine_webhooks_do_not_wait_for_a_dead_process(sqlite_url: str, dead_pid: int, alive: bool) -> None:
    database = Database(sqlite_url)
    enter(database, "w1", os.getpid() if alive else dead_pid)
    with database.write() as session:
        assert LeaseRepository(session).take(WEBHOOKS, "w1", 120)
        recover(session)
        assert LeaseRepository(session).take(WEBHOOKS, "w2", 120) is not alive
    database.dispose()
