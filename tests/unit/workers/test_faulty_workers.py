"""A worker's fault is never a job's: the job goes back to the queue, elsewhere first, and the worker says why."""

from __future__ import annotations

import errno
import os
import sys

import pytest
from support.refusals import refused
from support.registry_samples import sample_spec

from cli.standing import workers_standing
from onboard.domain.job import Job, JobState
from onboard.domain.progress import Progress
from onboard.domain.release import release_number
from onboard.domain.worker import Trouble, WorkerState
from onboard.errors import BaseDamagedError, BaseMissingError, OtherBaseError
from onboard.jobs import status
from onboard.jobs.detached import require_no_trouble
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.workers import WorkerRepository
from workers.children import MOST_EARLY_ENDS, SILENT_SECONDS, Children
from workers.faults import TroubleError
from workers.last_words import LastWords
from workers.plan import WorkerPlan
from workers.pulse import Beat, Pulse, read_beat, shared_memory, write_beat
from workers.shell import work

BROKEN = BaseDamagedError("hypernetwork.safetensors is not readable.", "Restore it.")
TROUBLE = Trouble(BROKEN.message, BROKEN.remedy, stops=True)


def enter(services: Services, name: str, trouble: Trouble | None = None) -> None:
    facts = {"trouble": None if trouble is None else trouble.to_json()}
    with services.database.write() as session:
        WorkerRepository(session).enter(
            name, WorkerState.RUNNING, queues=["default"], host="h", device="cpu", pid=7, facts=facts
        )


def submit(services: Services) -> Job:
    with services.database.write() as session:
        return JobRepository(session).add(sample_spec())[0]


def attempt(services: Services, worker: str, error: Exception) -> tuple[Job | None, Trouble | None]:
    """What `worker` makes of the next job, which ends with `error`."""

    def run(job: Job, services: Services, progress: Progress) -> None:
        raise error

    try:
        return work(services, worker, ["default"], run), None
    except TroubleError as caught:
        return None, caught.trouble


def row(services: Services, job: Job) -> Job:
    with services.database.read() as session:
        return JobRepository(session).get(job.id)


@pytest.mark.parametrize("error", [BROKEN, ImportError("No module named 'torch'"), RuntimeError("CUDA error: unknown")])
def test_a_job_that_a_broken_machine_could_not_run_waits_for_another_worker(
    services: Services, error: Exception
) -> None:
    enter(services, "broken")
    enter(services, "whole")
    job = submit(services)
    done, trouble = attempt(services, "broken", error)
    assert done is None
    assert trouble is not None
    assert trouble.stops
    waiting = row(services, job)
    assert (waiting.state, waiting.worker) == (JobState.QUEUED, None)
    assert waiting.error is not None
    assert not waiting.attempts_used_up
    assert waiting.max_attempts - waiting.attempt == 3, "the attempt does not count"
    assert attempt(services, "broken", error) == (None, None), "others come first"
    ended, _ = attempt(services, "whole", RuntimeError("its own fault"))
    assert ended is not None
    assert ended.state is JobState.FAILED


def test_where_nobody_else_is_left_the_worker_takes_it_again_once_it_can(services: Services) -> None:
    enter(services, "broken")
    job = submit(services)
    attempt(services, "broken", BROKEN)
    assert row(services, job).state is JobState.QUEUED
    enter(services, "other", TROUBLE)  # it lives, but can do as little
    ended, _ = attempt(services, "broken", RuntimeError("its own fault"))
    assert ended is not None
    assert ended.id == job.id


@pytest.mark.parametrize("kind", [BaseMissingError, OtherBaseError])
def test_a_base_that_only_this_worker_lacks_is_left_to_others_and_fails_where_there_are_none(
    services: Services, kind: type[BaseMissingError] | type[OtherBaseError]
) -> None:
    enter(services, "w1")
    alone = submit(services)
    ended, trouble = attempt(services, "w1", kind("It has another base."))
    assert trouble is None
    assert ended is not None
    assert (ended.id, ended.state) == (alone.id, JobState.FAILED)
    enter(services, "w2")
    job = submit(services)
    _, trouble = attempt(services, "w1", kind("It has another base."))
    assert trouble is not None
    assert not trouble.stops, "it goes on with other jobs"
    assert row(services, job).state is JobState.QUEUED
    ended, _ = attempt(services, "w2", kind("So has this one."))
    assert ended is not None
    assert ended.state is JobState.FAILED, "every worker has tried"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), MemoryError()])
def test_a_full_disk_or_memory_is_tried_again(services: Services, error: Exception) -> None:
    enter(services, "w1")
    job = submit(services)
    ended, trouble = attempt(services, "w1", error)
    assert trouble is None
    assert ended is not None
    assert (row(services, job).state, ended.attempt) == (JobState.QUEUED, 1)


def test_retried_by_a_person_any_worker_may_take_it(services: Services) -> None:
    enter(services, "w1")
    enter(services, "w2")
    job = submit(services)
    attempt(services, "w1", BROKEN)
    attempt(services, "w2", RuntimeError("its own fault"))
    with services.database.write() as session:
        JobRepository(session).retry(job.id)
        assert ClaimRepository(session).claimable(["default"], "w1") == ["default"]


def test_a_name_with_letters_of_patterns_is_only_itself(services: Services) -> None:
    enter(services, "w%")
    enter(services, "w1")
    submit(services)
    attempt(services, "w%", BROKEN)
    with services.database.read() as session:
        claims = ClaimRepository(session)
        assert (claims.claimable(["default"], "w%"), claims.claimable(["default"], "w1")) == ([], ["default"])


def test_a_faulty_worker_serves_no_queue_and_everybody_who_watches_is_told_why(services: Services) -> None:
    enter(services, "w1", TROUBLE)
    with services.database.read() as session:
        assert WorkerRepository(session).serving("default") == []
    seen = status.workers(services.database).to_json()
    assert [worker["state"] for worker in seen["workers"]] == ["faulty"]
    wait = status.waiting(services.database, submit(services))
    assert wait is not None
    assert wait.message.endswith("no worker on default, w1 takes no jobs: hypernetwork.safetensors is not readable")
    assert wait.remedy == "Restore it."
    with refused("worker-in-trouble", name="w1", reason="hypernetwork.safetensors is not readable.") as caught:
        workers_standing(seen, release_number())
    assert caught.value.remedy == "Restore it."


def test_whoever_waits_for_a_job_is_told_why_its_worker_left(services: Services) -> None:
    enter(services, "w1", TROUBLE)
    require_no_trouble(services, "default")  # it still tries
    with services.database.write() as session:
        WorkerRepository(session).stop("w1")
    with refused("detached-worker-left"):
        require_no_trouble(services, "default")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Pool:
    """The pool of a worker whose children write into shared memory, without processes."""

    def __init__(self, idle_exit: float | None = None) -> None:
        self.clock, self.present = Clock(), {1}
        self.memory = shared_memory()
        plan = WorkerPlan(None, "w1", pulse=self.memory, idle_exit_seconds=idle_exit)  # type: ignore[arg-type]  # not read
        self.children = Children(plan, lambda: self.present, clock=self.clock)

    def says(self, pid: int, count: int, *, loaded: bool = False, trouble: Trouble | None = None) -> None:
        write_beat(self.memory, Beat(pid, count, loaded, trouble))
        self.look()

    def look(self, after: float = 0.0) -> None:
        self.clock.now += after
        self.children.look()

    def replace(self, pid: int) -> None:
        self.present = {pid}
        self.look()
        self.look()  # one that is missing at two looks has ended


def test_children_that_end_before_they_are_ready_are_counted_until_one_is() -> None:
    pool = Pool()
    for pid in range(2, 1 + MOST_EARLY_ENDS):
        pool.replace(pid)
        assert pool.children.hopeless() is None
    pool.says(MOST_EARLY_ENDS, 1, loaded=True)
    pool.replace(20)
    for pid in range(21, 20 + MOST_EARLY_ENDS):
        pool.replace(pid)
        assert pool.children.hopeless() is None
    pool.replace(30)
    hopeless = pool.children.hopeless()
    assert hopeless is not None
    assert "(3 times in a row)" in hopeless.message


def test_a_child_that_its_parent_killed_does_not_count() -> None:
    pool = Pool()
    for pid in range(2, 10):
        pool.children.spare(pool.present)
        pool.replace(pid)
    assert pool.children.hopeless() is None


def test_health_is_what_the_child_did_lately() -> None:
    pool = Pool()
    pool.says(1, 1, loaded=True)
    assert pool.children.healthy
    pool.look(after=SILENT_SECONDS - 1)
    assert pool.children.healthy
    pool.look(after=1)
    assert not pool.children.healthy
    assert "not responded" in pool.children.facts()["trouble"]["message"]
    pool.says(1, 2, loaded=True)
    assert pool.children.healthy


def test_a_clock_that_jumps_is_no_sign_of_life() -> None:
    """What is written may be as new as it likes: only that it changes counts."""
    pool = Pool()
    pool.says(1, 1, loaded=True)
    for _ in range(3):
        write_beat(pool.memory, Beat(1, 1, loaded=True))
        pool.look(after=SILENT_SECONDS)
    assert not pool.children.healthy


def test_a_child_that_cannot_load_is_replaced_after_longer_and_longer_pauses() -> None:
    pool, pauses = Pool(), []
    for number in range(1, 6):
        pool.says(number, 1, trouble=TROUBLE)
        assert pool.children.trouble == TROUBLE
        pause = 0
        while not pool.children.has_to_try_again():
            pool.says(number, pause + 2, trouble=TROUBLE)
            pool.look(after=1.0)
            pause += 1
        pauses.append(pause)
        pool.children.spare(pool.present)
        pool.replace(number + 1)
        assert not pool.children.healthy, "until the next one knows better"
    assert pauses == [5, 20, 60, 300, 300]
    pool.says(6, 1, loaded=True)
    assert pool.children.healthy
    assert pool.children.hopeless() is None, "it stays, to be seen and to be mended"


def test_a_worker_in_trouble_is_well_again_when_a_child_has_loaded_everything_and_not_while_one_loads() -> None:
    pool = Pool()
    pool.says(1, 1, trouble=TROUBLE)
    pool.children.spare(pool.present)
    pool.replace(2)
    pool.says(2, 1)
    assert pool.children.trouble == TROUBLE
    pool.says(2, 2, loaded=True)
    assert pool.children.trouble is None


def test_a_child_that_could_not_load_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr("workers.children.os.kill", lambda pid, _: killed.append(pid))
    pool = Pool()
    pool.says(1, 1, trouble=TROUBLE)
    pool.look(after=5.0)
    assert pool.children.has_to_try_again()
    pool.children.kill()
    assert killed == [1]
    pool.says(1, 2, trouble=TROUBLE)  # its last word
    pool.present = {2}  # the pool has replaced it already
    for _ in range(3):
        pool.look(after=0.5)
        assert not pool.children.has_to_try_again()


def test_a_worker_that_comes_and_goes_by_itself_leaves_after_three_attempts() -> None:
    pool = Pool(idle_exit=60.0)
    for number in range(1, 4):
        assert pool.children.hopeless() is None
        pool.says(number, 1, trouble=TROUBLE)
        if number < 3:
            pool.children.spare(pool.present)
            pool.replace(number + 1)
    assert pool.children.hopeless() == TROUBLE


def test_what_a_child_says_in_shared_memory_is_read_whole() -> None:
    memory = shared_memory()
    assert read_beat(memory) is None
    pulse = Pulse(memory)
    pulse.say(Trouble("ä" * 5000, "Restore it.", stops=True))
    beat = read_beat(memory)
    assert beat is not None
    assert beat.trouble is not None
    assert beat.trouble.message == "ä" * 1000
    pulse.say(None, loaded=True)
    beat = read_beat(memory)
    assert beat is not None
    assert (beat.loaded, beat.trouble) == (True, None)


def test_what_a_child_said_before_it_could_log_is_kept() -> None:
    words = LastWords()
    script = "import sys; sys.exit('the installation is gone')"
    pid = words._spawn(sys.executable, [sys.executable, "-c", script], [])
    os.waitpid(pid, 0)
    assert words.pids() == {pid}
    assert words.of(pid) == "the installation is gone"
    assert words.of(pid) == ""
