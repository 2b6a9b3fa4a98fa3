"""The log of a real worker: JSON by the line from parent and child, each line with its job."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from support.real_services import wait_until
from support.real_workers import Deployment

from onboard.domain.job import Job
from onboard.settings import Settings


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("logs")
    with Deployment(Settings(home=folder / "home"), folder) as deployment:
        deployment.start_worker()
        yield deployment


def lines(deployment: Deployment) -> list[dict[str, Any]]:
    """Every line that the worker has written."""
    return [json.loads(line) for line in deployment.workers[0].log.read_text().splitlines()]


def of(deployment: Deployment, job: Job) -> list[dict[str, Any]]:
    return [line for line in lines(deployment) if line.get("job") == job.id]


def test_nobody_but_us_speaks_when_all_is_well(deployment: Deployment) -> None:
    job = deployment.finished(deployment.submit())
    wait_until(lambda: len(of(deployment, job)) == 2, what=f"two lines: {lines(deployment)}")
    begins, over = of(deployment, job)
    assert (begins["message"], over["message"]) == ("The attempt starts", "The attempt has ended; the job is succeeded")
    assert "stage" not in begins
    assert over["stage"] == "train"
    assert {line["logger"].partition(".")[0] for line in lines(deployment)} == {"workers"}
    assert lines(deployment)[0]["message"].startswith("Takes jobs from default on ")


def test_a_jobs_lines_name_it_and_are_json_even_when_its_process_is_killed(deployment: Deployment) -> None:
    job = deployment.finished(deployment.submit(crash_until_attempt=2))
    lines_of_job = of(deployment, job)
    assert {line["worker"] for line in lines(deployment)} == {"w1"}
    assert {line["task"] for line in lines_of_job} == {"colours"}
    assert [line["attempt"] for line in lines_of_job if line["message"] == "The attempt starts"] == [1, 2]
    died = [line for line in lines_of_job if "process" in line["message"]]
    assert {(line["logger"], line["attempt"]) for line in died} == {("workers.work_in_hand", 1)}


def test_an_unexpected_error_is_logged_with_its_stage_and_trace_and_without_the_password(
    deployment: Deployment,
) -> None:
    job = deployment.finished(deployment.submit(fault="redis://:hidden@host is odd"))
    (line,) = [line for line in of(deployment, job) if line["level"] == "ERROR"]
    assert (line["attempt"], line["stage"], line["logger"]) == (1, "train", "workers.shell")
    assert line["trace"].endswith("RuntimeError: redis://:***@host is odd")
    assert "hidden" not in deployment.workers[0].log.read_text()
    assert "hidden" not in str(deployment.job(job).error)


def test_it_leaves_without_a_word_that_is_not_json(deployment: Deployment) -> None:
    deployment.workers[0].signal(signal.SIGTERM)
    assert deployment.workers[0].exit_code() == 0
    assert (lines(deployment)[-1]["message"], lines(deployment)[-1]["worker"]) == ("Has left", "w1")
