"""Real workers on the embedded default and on PostgreSQL + Redis: jobs end once, whatever is killed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import make_url, update
from support.real_services import RedisServer, wait_until
from support.real_workers import Deployment
from support.registry_samples import sample_spec

from bench.chaos.proxy import Proxy
from onboard.domain.job import JobState
from onboard.domain.release import release_number
from onboard.domain.worker import WorkerState
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import JobRow
from onboard.registry.workers import QueueRepository, WorkerRepository


def test_a_job_is_published_and_its_story_can_be_read(deployment: Deployment) -> None:
    worker = deployment.start_worker()
    job = deployment.finished(deployment.submit())
    assert (job.state, job.attempt, job.worker) == (JobState.SUCCEEDED, 1, worker.name)
    assert job.result == {"state": "succeeded", "version": 1}
    with deployment.services.database.read() as session:
        messages = [event.message for event in EventRepository(session).list(job.id)]
    assert messages == ["queued", "running", "train started", "train finished", "succeeded"]
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == 0
    assert [row.state for row in deployment.rows()] == [WorkerState.STOPPED]


def test_a_killed_child_is_replaced_and_its_job_ends_once(deployment: Deployment, tmp_path: Path) -> None:
    # only the parent's look at its pool, and neither the lease nor its heartbeat, can explain the recovery
    deployment.start_worker(lease_seconds=120, heartbeat_seconds=120)
    job = deployment.submit(seconds=1.0, mark=str(tmp_path))
    pid = deployment.running(job).worker_pid
    assert pid is not None
    killed_at = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    done = deployment.finished(job)
    assert time.monotonic() - killed_at < 50
    assert (done.state, done.attempt) == (JobState.SUCCEEDED, 2)
    assert [version.job for version in deployment.versions()] == [job.id]
    assert len(list(tmp_path.glob(f"{job.id}-*"))) == 2


def test_a_child_that_is_killed_while_it_waits_is_replaced_by_one_that_hears(deployment: Deployment) -> None:
    deployment.start_worker()
    pid = deployment.finished(deployment.submit()).worker_pid
    assert pid is not None
    time.sleep(1.0)  # until it waits for its next bell
    killed_at = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    assert deployment.finished(deployment.submit()).state is JobState.SUCCEEDED
    assert time.monotonic() - killed_at < 50


def test_sigterm_hands_a_long_job_back_to_the_queue(deployment: Deployment) -> None:
    worker = deployment.start_worker(drain_seconds=0.5)
    job = deployment.submit(seconds=300.0)
    deployment.running(job)
    stopped_at = time.monotonic()
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == 0
    assert time.monotonic() - stopped_at < 50
    back = deployment.job(job)
    assert (back.state, back.attempt, back.max_attempts) == (JobState.QUEUED, 1, 4)
    assert back.worker is None


@pytest.mark.services
def test_sigterm_ends_a_busy_worker_whose_database_is_away(grown: Deployment, tmp_path: Path) -> None:
    there = make_url(grown.settings.database_url or "")
    assert there.port is not None
    with Proxy(there.port) as proxy:
        through = there.set(port=proxy.port).render_as_string(hide_password=False)
        with Deployment(grown.settings.model_copy(update={"database_url": through}), tmp_path) as cut_off:
            worker = cut_off.start_worker(drain_seconds=0.5)
            job = grown.submit(seconds=300.0)
            grown.running(job)
            proxy.refuse()
            worker.signal(signal.SIGTERM)
            assert worker.exit_code() == 0
    assert "Exiting without the database" in worker.log.read_text()
    assert grown.job(job).state is JobState.RUNNING  # until its lease runs out


def test_sigterm_lets_the_job_finish(embedded: Deployment) -> None:
    worker = embedded.start_worker()
    job = embedded.submit(seconds=1.5)
    embedded.running(job)
    worker.signal(signal.SIGTERM)
    assert worker.exit_code() == 0
    assert embedded.job(job).state is JobState.SUCCEEDED
    assert embedded.job(job).attempt == 1


def test_a_killed_worker_loses_its_job_to_another_one(deployment: Deployment) -> None:
    first = deployment.start_worker(lease_seconds=1)
    job = deployment.submit(seconds=1.0)
    deployment.running(job)
    first.signal(signal.SIGKILL)
    second = deployment.start_worker()
    done = deployment.finished(job)
    assert (done.state, done.attempt, done.worker) == (JobState.SUCCEEDED, 2, second.name)
    assert len(deployment.versions()) == 1


def test_a_drained_worker_ends_its_job_takes_no_other_and_leaves(deployment: Deployment) -> None:
    worker = deployment.start_worker()
    job = deployment.submit(seconds=1.0)
    deployment.running(job)
    with deployment.services.database.write() as session:
        WorkerRepository(session).drain(worker.name)
    other = deployment.submit()
    assert worker.exit_code() == 0
    assert deployment.job(job).state is JobState.SUCCEEDED
    assert deployment.job(other).state is JobState.QUEUED


@pytest.mark.services
def test_a_job_survives_a_broker_that_is_away_and_loses_everything(
    grown: Deployment, redis_server: RedisServer
) -> None:
    grown.start_worker()
    assert grown.finished(grown.submit()).state is JobState.SUCCEEDED
    redis_server.kill()
    asked_at = time.monotonic()
    job = grown.submit()
    assert time.monotonic() - asked_at < 15
    assert grown.warning is not None
    assert "job is stored" in grown.warning
    redis_server.start()
    assert grown.finished(job).state is JobState.SUCCEEDED


@pytest.mark.services
def test_bells_do_not_pile_up_while_every_worker_is_busy(grown: Deployment, redis_server: RedisServer) -> None:
    grown.start_worker(reconcile_seconds=0.1)
    busy = grown.submit(seconds=2.5)
    grown.running(busy)
    waiting = [grown.submit(ring=False) for _ in range(3)]
    rung = redis_server.length("onboard.default")
    time.sleep(1.5)
    assert redis_server.length("onboard.default") <= rung
    for job in (busy, *waiting):
        assert grown.finished(job).state is JobState.SUCCEEDED


@pytest.mark.services
def test_two_workers_share_the_jobs(grown: Deployment) -> None:
    grown.start_worker(), grown.start_worker()
    one, two = grown.submit(seconds=300.0), grown.submit(seconds=300.0)
    assert {grown.running(one).worker, grown.running(two).worker} == {"w1", "w2"}


def test_a_lost_bell_is_rung_again_and_many_bells_are_harmless(steady: Deployment) -> None:
    silent = steady.submit(ring=False)
    assert steady.finished(silent).state is JobState.SUCCEEDED
    jobs = [steady.submit() for _ in range(5)] + [steady.submit(ring=False) for _ in range(5)]
    assert {steady.finished(job).attempt for job in jobs} == {1}
    published = [version.job for version in steady.versions()]
    assert {job: published.count(job) for job in published} == dict.fromkeys(published, 1)
    assert {silent.id, *(job.id for job in jobs)} <= set(published)


def test_a_running_job_is_cancelled_within_seconds(steady: Deployment) -> None:
    job = steady.submit(seconds=300.0)
    steady.running(job)
    with steady.services.database.write() as session:
        JobRepository(session).cancel(job.id)
    assert steady.finished(job).state is JobState.CANCELLED
    assert job.id not in [version.job for version in steady.versions()]


def test_a_service_that_is_away_makes_the_job_wait_and_try_again(steady: Deployment) -> None:
    job = steady.submit(unavailable_until_attempt=2)
    waiting = wait_until(lambda: (now := steady.job(job)).error and now, what="the first attempt to fail")
    assert waiting.state is JobState.QUEUED
    assert waiting.error["code"] == "unavailable"
    done = steady.finished(job)
    assert (done.state, done.attempt, done.error) == (JobState.SUCCEEDED, 2, None)


def test_a_job_that_kills_every_child_is_dead_and_the_worker_goes_on(steady: Deployment) -> None:
    job = steady.submit(crash=True)
    dead = steady.finished(job)
    assert (dead.state, dead.attempt) == (JobState.DEAD, 3)
    assert steady.finished(steady.submit()).state is JobState.SUCCEEDED


def test_a_paused_queue_waits_and_goes_on(steady: Deployment) -> None:
    with steady.services.database.write() as session:
        QueueRepository(session).set_paused("default", True)
    job = steady.submit()
    time.sleep(1.0)
    assert steady.job(job).state is JobState.QUEUED
    with steady.services.database.write() as session:
        QueueRepository(session).set_paused("default", False)
    assert steady.finished(job).state is JobState.SUCCEEDED


def test_a_job_of_newer_code_waits_for_a_newer_worker(steady: Deployment) -> None:
    with steady.services.database.write() as session:
        job, _ = JobRepository(session).add(sample_spec(), priority=9)
        session.execute(update(JobRow).where(JobRow.id == job.id).values(needs_release=release_number("99.0.0")))
    other = steady.submit()
    assert steady.finished(other).state is JobState.SUCCEEDED  # it stands in nobody's way
    log = steady.workers[0].log
    wait_until(lambda: "onboard 99.0.0 or later" in log.read_text(), what="the worker to say why it leaves the job")
    assert steady.job(job).state is JobState.QUEUED
    with steady.services.database.write() as session:
        session.execute(update(JobRow).where(JobRow.id == job.id).values(needs_release=release_number()))
    assert steady.finished(job).state is JobState.SUCCEEDED


@pytest.mark.services
@pytest.mark.parametrize("hours", [-1, 1])
def test_a_workers_wrong_clock_does_not_matter(grown: Deployment, tmp_path: Path, hours: int) -> None:
    modules = tmp_path / "shifted"
    modules.mkdir()
    shifted = f"import time; right = time.time; time.time = lambda: right() + {3600 * hours}\n"
    (modules / "sitecustomize.py").write_text(shifted)  # every process of that worker imports it first
    wrong = grown.start_worker(modules=modules)
    job = grown.submit(seconds=5.0, time_limit_seconds=60.0)
    assert grown.running(job).worker == wrong.name
    right = grown.start_worker()  # it would take the job, were it not for the lease of 3 s that is kept
    assert [row.live for row in grown.rows()] == [True, True]
    done = grown.finished(job)
    assert (done.state, done.attempt, done.worker) == (JobState.SUCCEEDED, 1, wrong.name)
    assert right.process.poll() is None
