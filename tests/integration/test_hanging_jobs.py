"""Jobs whose process hangs in native code, where no checkpoint is ever reached: they end, and the worker lives on."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.real_workers import Deployment

from onboard.domain.job import JobState
from onboard.registry.jobs import JobRepository


@pytest.mark.parametrize("how", ["alone", "whole"])
def test_a_job_that_hangs_beyond_its_time_limit_fails_and_the_next_one_runs(steady: Deployment, how: str) -> None:
    job = steady.submit(hang=how, hang_until_attempt=9, time_limit_seconds=1.0)
    done = steady.finished(job)
    assert (done.state, done.attempt) == (JobState.FAILED, 1)
    assert done.error is not None
    assert done.error["code"] == "time_limit"
    assert "longer than 1 s" in done.error["message"]
    assert steady.finished(steady.submit()).state is JobState.SUCCEEDED
    assert steady.workers[0].process.poll() is None


def test_a_cancelled_job_that_hangs_is_cancelled_all_the_same(steady: Deployment) -> None:
    job = steady.submit(hang="alone", hang_until_attempt=9)
    steady.running(job)
    with steady.services.database.write() as session:
        JobRepository(session).cancel(job.id)
    assert steady.finished(job).state is JobState.CANCELLED
    assert steady.finished(steady.submit()).state is JobState.SUCCEEDED


def test_a_job_that_stops_its_own_heartbeat_is_tried_again_by_the_same_worker(steady: Deployment) -> None:
    job = steady.submit(hang="whole", hang_until_attempt=2)
    done = steady.finished(job)
    assert (done.state, done.attempt, done.worker) == (JobState.SUCCEEDED, 2, "w1")
    assert steady.workers[0].process.poll() is None


def test_a_job_within_its_limit_keeps_the_workers_process(steady: Deployment, tmp_path: Path) -> None:
    for _ in range(2):
        job = steady.submit(seconds=0.5, mark=str(tmp_path), time_limit_seconds=60.0)
        assert steady.finished(job).state is JobState.SUCCEEDED
    assert len({mark.name.rpartition("-")[2] for mark in tmp_path.iterdir()}) == 1
