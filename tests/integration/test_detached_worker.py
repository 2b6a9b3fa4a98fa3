"""The detached start: one worker, whoever submits, gone when there is nothing to do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from support.real_services import wait_until
from support.real_workers import TESTS, Deployment

from onboard.bases import Base
from onboard.domain.job import JobState
from onboard.domain.worker import WorkerState
from onboard.jobs.detached import ensure_worker, spawned
from onboard.settings import Settings


@pytest.fixture
def deployment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    with Deployment(Settings(home=tmp_path / "home"), tmp_path) as deployment:
        yield deployment
    for process in spawned:
        process.kill()
        process.wait()


def ensure(deployment: Deployment, idle_exit_seconds: float = 30.0) -> str | None:
    return ensure_worker(deployment.services, idle_exit_seconds=idle_exit_seconds, pipeline="support.fake_pipelines")


def test_many_submitters_at_once_start_one_worker_in_a_session_of_its_own(deployment: Deployment) -> None:
    jobs = [deployment.submit() for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        started = [future.result() for future in [pool.submit(ensure, deployment) for _ in range(4)]]
    assert len([name for name in started if name]) == 1
    for job in jobs:
        assert deployment.finished(job).state is JobState.SUCCEEDED
    assert ensure(deployment) is None
    (row,) = deployment.rows()
    assert row.pid is not None
    assert os.getsid(row.pid) == row.pid != os.getsid(0)
    assert "succeeded" in (deployment.settings.resolved_home / "logs" / "worker.log").read_text()


def test_an_idle_worker_leaves_and_the_next_submit_starts_another(deployment: Deployment) -> None:
    job = deployment.submit()
    assert ensure(deployment, idle_exit_seconds=1.0)
    assert deployment.finished(job).state is JobState.SUCCEEDED
    wait_until(lambda: deployment.rows()[0].state is WorkerState.STOPPED, what="the worker to leave")
    assert spawned[-1].wait(60) == 0
    job = deployment.submit()
    assert ensure(deployment, idle_exit_seconds=1.0)
    assert deployment.finished(job).state is JobState.SUCCEEDED


def test_a_worker_finds_the_bases_of_the_home(deployment: Deployment, tiny_base: Base) -> None:
    shutil.copytree(tiny_base.folder, deployment.settings.resolved_home / "bases" / "trained-here")
    job = deployment.submit(named_base="trained-here")
    ensure(deployment)
    assert deployment.finished(job).state is JobState.SUCCEEDED


def test_only_the_home_stands_in_the_environment_of_a_worker_and_no_setting_in_its_arguments(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token is not even told; the webhooks' secret, which a worker needs, comes through the pipe."""
    secrets = {"ONBOARD_TOKEN": f"onb_{'a' * 43}", "ONBOARD_WEBHOOK_SECRET": f"whsec_{'b' * 32}"}
    for name, secret in secrets.items():
        monkeypatch.setenv(name, secret)
    settings = Settings(home=deployment.settings.home)
    assert secrets["ONBOARD_TOKEN"] not in json.dumps(settings.for_worker())
    assert secrets["ONBOARD_WEBHOOK_SECRET"] in json.dumps(settings.for_worker())
    ensure_worker(
        replace(deployment.services, settings=settings), idle_exit_seconds=30.0, pipeline="support.fake_pipelines"
    )
    assert deployment.finished(deployment.submit()).state is JobState.SUCCEEDED
    parent = psutil.Process(spawned[-1].pid)
    for process in (parent, *parent.children(recursive=True)):
        environment = process.environ()
        assert "PYTHONPATH" in environment
        assert {name for name in environment if "ONBOARD_" in name} == {"ONBOARD_HOME"}
        assert environment["ONBOARD_HOME"] == str(settings.resolved_home)
        seen = json.dumps([environment, process.cmdline()])
        assert "ONBOARD_" not in json.dumps(process.cmdline())
        assert not any(secret in seen for secret in secrets.values())


def test_a_killed_worker_is_replaced_at_once_and_its_job_goes_on(deployment: Deployment) -> None:
    job = deployment.submit(seconds=1.0)
    ensure(deployment)
    deployment.running(job)
    children = psutil.Process(spawned[-1].pid).children()
    spawned[-1].kill()
    psutil.wait_procs(children, timeout=30)  # they die with their parent
    assert ensure(deployment) is not None
    done = deployment.finished(job)
    assert (done.state, done.attempt) == (JobState.SUCCEEDED, 2)


def test_a_worker_whose_home_was_deleted_leaves(deployment: Deployment, tmp_path: Path) -> None:
    ensure(deployment)
    deployment.finished(deployment.submit())
    deployment.settings.resolved_home.rename(tmp_path / "gone")
    assert spawned[-1].wait(60) == 0


def test_a_grown_up_deployment_starts_nothing_by_itself(tmp_path: Path, sqlite_url: str) -> None:
    with Deployment(
        Settings(home=tmp_path, database_url=sqlite_url, broker_url="redis://127.0.0.1:1/0"), tmp_path
    ) as deployment:
        assert ensure_worker(deployment.services) is None
        assert deployment.rows() == []


def test_the_submitter_may_end_while_its_worker_goes_on(deployment: Deployment) -> None:
    job = deployment.submit(seconds=0.5)
    program = (
        "import sys; from pathlib import Path; from onboard.settings import Settings\n"
        "from onboard.registry.services import open_services; from onboard.jobs.detached import ensure_worker\n"
        "print(ensure_worker(open_services(Settings(home=Path(sys.argv[1]))), idle_exit_seconds=1.0,"
        " pipeline='support.fake_pipelines'))"
    )
    home = str(deployment.settings.resolved_home)
    done = subprocess.run([sys.executable, "-c", program, home], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == deployment.rows()[0].name
    assert deployment.finished(job).state is JobState.SUCCEEDED
