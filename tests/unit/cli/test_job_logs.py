"""`onboard jobs logs`: events of all attempts, the worker's lines beside them, and following until the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused
from support.registry_samples import claim_job, sample_spec
from typer.testing import CliRunner, Result

from cli import job_logs as command
from cli.jobs import app
from onboard.domain.job import Job, JobState, Stage
from onboard.jobs import logs as job_logs
from onboard.operations.worker_logs import log_file, log_files
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.settings import Settings


def run(*words: str) -> Result:
    result = CliRunner().invoke(app, ["logs", *words], catch_exceptions=False)
    assert result.exit_code == 0
    return result


def document(*words: str) -> dict[str, Any]:
    logs: dict[str, Any] = json.loads(run(*words, "--json").stdout)
    return logs


def claim(services: Services, worker: str) -> Job:
    return claim_job(services.database, worker, lease_seconds=-1)


def finish(services: Services, job: Job) -> None:
    with services.database.write() as session:
        ClaimRepository(session).finish(job.id, job.attempt, JobState.FAILED, error={"message": "no"})


def note(services: Services, job: Job, message: str) -> None:
    with services.database.write() as session:
        ClaimRepository(session).append(job.id, job.attempt, "note", message, stage=Stage.TRAIN)


@pytest.fixture
def job(services: Services) -> Job:
    """One that was lost by w1 and failed on w2."""
    with services.database.write() as session:
        JobRepository(session).add(sample_spec())
    note(services, claim(services, "w1"), "half way")
    second = claim(services, "w2")
    finish(services, second)
    return second


@pytest.fixture
def write_log(services: Services) -> Callable[..., Path]:
    file = log_file(services.settings.resolved_home)
    file.parent.mkdir()

    def write(*lines: str, full: bool = False) -> Path:
        place = file.with_name("worker.log.1") if full else file
        with place.open("a") as stream:
            stream.write("".join(lines))
        return file

    return write


def line(job: Job, message: str, at: str = "2026-01-01T00:00:00.000Z", **more: Any) -> str:
    said = {"time": at, "level": "INFO", "logger": "workers.shell", "message": message, "job": job.id, "worker": "w1"}
    return json.dumps({**said, "attempt": 1, **more}) + "\n"


def test_every_attempt_is_shown_with_its_times_and_its_worker(job: Job) -> None:
    shown = run(job.id).stdout.splitlines()
    assert [shown_line.split("  ", 1)[1].partition("  (")[0] for shown_line in shown] == [
        "attempt 0  queued",
        "attempt 1 on w1  running",
        "attempt 1 on w1  half way",
        "attempt 2 on w2  running",
        "attempt 2 on w2  failed: no",
    ]
    assert all(shown_line[23] == "Z" for shown_line in shown)


def test_json_has_the_events_with_their_workers_and_the_state(job: Job) -> None:
    logs = document(job.id)
    assert (logs["job"], logs["state"], logs["lines"]) == (job.id, "failed", [])
    assert [event["worker"] for event in logs["events"]] == [None, "w1", "w1", "w2", "w2"]
    assert logs["log"].endswith("logs/worker.log")


def test_one_attempt_can_be_asked_for(job: Job) -> None:
    assert {event["attempt"] for event in document(job.id, "--attempt", "2")["events"]} == {2}


def test_an_attempt_that_never_was_is_not_found(job: Job) -> None:
    with refused("unknown-attempt"):
        run(job.id, "--attempt", "3")


def test_lines_of_the_detached_worker_about_this_job_stand_between_its_events(
    job: Job, write_log: Callable[..., Path]
) -> None:
    write_log(line(job, "from the full file"), full=True)
    write_log(
        "no JSON at all\n",
        f'["{job.id}"]\n',
        f'{{"job": "{job.id}"}}\n',
        line(job, "of another").replace(job.id, "f" * 12),
    )
    write_log(line(job, "It failed", at="2999-01-01T00:00:00.000Z", attempt=2, worker="w2", trace="Traceback"))
    write_log(line(job, "half a li")[:-9])
    assert [entry["message"] for entry in document(job.id)["lines"]] == ["from the full file", "It failed"]
    assert [entry["message"] for entry in document(job.id, "--attempt", "2")["lines"]] == ["It failed"]
    shown = run(job.id)
    assert shown.stdout.startswith(
        "2026-01-01T00:00:00.000Z  attempt 1 on w1  INFO workers.shell: from the full file\n"
    )
    assert shown.stdout.endswith("attempt 2 on w2  INFO workers.shell: It failed\nTraceback\n")
    assert shown.stderr == ""


def test_where_there_are_none_it_says_whose_they_are(job: Job) -> None:
    said = run(job.id).stderr
    assert said.startswith(f'log lines: on the standard error of w1, w2, with "job": "{job.id}"')
    assert "worker.log has none" in said


def test_a_long_log_is_read_part_by_part(
    services: Services, job: Job, write_log: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_logs, "PART_BYTES", 2000)
    for full in (True, False):
        write_log(*(line(job, f"line {number} {full}") for number in range(40)), full=full)
    expected = [f"line {number} {full}" for full in (True, False) for number in range(40)]
    part = job_logs.read_log(services.database, log_files(services.settings), job.id)
    assert part["more"]
    assert 10 < len(part["lines"]) < 40
    assert sorted(entry["message"] for entry in document(job.id)["lines"]) == sorted(expected)


@pytest.mark.parametrize("as_json", [False, True])
def test_following_goes_on_until_the_job_has_ended(
    services: Services, write_log: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    with services.database.write() as session:
        JobRepository(session).add(sample_spec())
    job = claim(services, "w1")
    file, whole = write_log(line(job, "early")), line(job, "whole")
    steps = iter(
        (
            lambda: note(services, job, "a third"),
            lambda: file.write_text(line(job, "anew")),  # shorter than what was read: another file
            lambda: write_log(whole[:20]),
            lambda: write_log(whole[20:]),
            lambda: finish(services, job),
        )
    )
    monkeypatch.setattr(command.time, "sleep", lambda seconds: next(steps)())
    result = run(job.id, "--follow", *(["--json"] if as_json else []))
    printed = result.stderr if as_json else result.stdout
    ends = [printed_line.rpartition("  ")[2].rpartition(": ")[2] for printed_line in printed.splitlines()]
    assert ends[0] == "early"
    assert "queued" in ends[1]
    assert ends[3:6] == ["a third", "anew", "whole"]
    assert "failed" in printed.splitlines()[6]
    if as_json:
        logs = json.loads(result.stdout)
        assert logs["state"] == "failed"
        assert [entry["message"] for entry in logs["lines"]] == ["early", "anew", "whole"]


def test_more_events_than_a_page_are_all_shown(services: Services, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_logs, "EVENTS_AT_ONCE", 2)
    assert len(document(job.id)["events"]) == 5


def test_with_servers_it_says_whose_log_to_look_into(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONBOARD_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("ONBOARD_BROKER_URL", "redis://127.0.0.1:1/0")
    services = open_services(Settings())
    with services.database.write() as session:
        JobRepository(session).add(sample_spec())
    job = claim(services, "gpu-a-0")
    services.close()
    assert run(job.id).stderr == f'log lines: on the standard error of gpu-a-0, with "job": "{job.id}"\n'
    assert document(job.id)["log"] is None
