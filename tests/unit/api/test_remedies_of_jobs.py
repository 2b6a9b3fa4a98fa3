"""What a job's document says to do is said in requests and fields over HTTP, and in commands to whoever runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from onboard.client import Onboard
from onboard.domain.access import Scope
from onboard.domain.job import JobSpec, JobState
from onboard.jobs.control import brief, find_job, full_document
from onboard.operations import access
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services

WARNING: dict[str, Any] = {
    "code": "too_many_labels", "message": "Many labels.", "count": 9,
    "remedy": "Is this the label? --label-field NAME", "examples": [{"label": "--label-field", "rows": 1}],
}  # fmt: skip
PROBLEM: dict[str, Any] = {"message": "has no label", "remedy": "--label-field NAME"}
ERROR: dict[str, Any] = {
    "code": "input", "message": "--init x cannot be used with --method linear.",
    "remedy": "Use --init auto, or one of: onboard tasks list",
    "problems": [PROBLEM],
}  # fmt: skip


@pytest.fixture
def jobs(tiny_services: Services) -> dict[str, str]:
    """One that succeeded, with a warning; one that failed; one that waits for a queue that is paused."""
    ids = {}
    with tiny_services.database.write() as session:
        for task in ("done", "failed"):
            ids[task] = JobRepository(session).add(JobSpec(task=task, dataset="sha256:" + "0" * 64))[0].id
            ClaimRepository(session).claim("w1", ["default"])
    result = {"version": 1, "dataset": {"kind": "classification", "warnings": [WARNING]}}
    with tiny_services.database.write() as session:
        ClaimRepository(session).finish(ids["done"], 1, JobState.SUCCEEDED, result=result)
        ClaimRepository(session).finish(ids["failed"], 1, JobState.FAILED, error=ERROR)
        waiting = JobSpec(task="waiting", dataset="sha256:" + "0" * 64)
        ids["waiting"] = JobRepository(session).add(waiting, queue="slow")[0].id
    return ids


def remedies(value: Any) -> Iterator[str]:
    """Every remedy in a document."""
    if isinstance(value, dict):
        yield from (part for key, part in value.items() if key == "remedy")
        value = list(value.values())
    if isinstance(value, list):
        yield from (remedy for part in value for remedy in remedies(part))


@pytest.mark.parametrize("path", ["", "?since=0", "/logs", "/events"])
@pytest.mark.parametrize("task", ["done", "failed"])
def test_no_remedy_of_a_job_is_a_command_or_an_option(
    door: TestClient, jobs: dict[str, str], task: str, path: str
) -> None:
    answer = door.get(f"/v1/jobs/{jobs[task]}{path}").raise_for_status()
    documents = [
        json.loads(line.removeprefix("data: ")) for line in answer.text.splitlines() if line.startswith(("data: ", "{"))
    ]
    said = list(remedies(documents))
    assert said or (task, path) in {("done", "/logs"), ("done", "/events")}
    assert [remedy for remedy in said if "--" in remedy or "onboard " in remedy] == []


def test_the_command_stands_beside_it(door: TestClient, jobs: dict[str, str]) -> None:
    done, failed = (door.get(f"/v1/jobs/{jobs[task]}").json() for task in ("done", "failed"))
    (warning,) = done["dataset"]["warnings"]
    assert warning == {**WARNING, "remedy": "Is this the label? label_field=NAME", "command": WARNING["remedy"]}
    assert failed["error"]["remedy"] == "Use init=auto, or one of: GET /v1/tasks"
    assert failed["error"]["message"] == ERROR["message"]
    assert failed["error"]["detail"] == "init x cannot be used with method=linear."
    assert failed["error"]["problems"][0]["remedy"] == "label_field=NAME"
    (failure,) = [event["numbers"]["error"] for event in failed["events"] if "error" in event["numbers"]]
    assert failure == failed["error"]
    assert {job["task"]: job["error"] for job in door.get("/v1/jobs").json()["jobs"]}["failed"] == failed["error"]


def test_a_command_without_a_counterpart_stays_whole(door: TestClient, jobs: dict[str, str]) -> None:
    waiting = door.get(f"/v1/jobs/{jobs['waiting']}").json()["waiting"]
    assert waiting["remedy"] == "onboard worker --queue slow"
    door.post("/v1/queue/pause", json={"queue": "slow"}).raise_for_status()
    waiting = door.get(f"/v1/jobs/{jobs['waiting']}").json()["waiting"]
    assert waiting["remedy"] == 'POST /v1/queue/resume with {"queue": "slow"}'
    assert waiting["command"] == "onboard queue resume slow"


def test_a_report_over_http_names_fields(door: TestClient, jobs: dict[str, str]) -> None:
    page = door.get(f"/v1/jobs/{jobs['done']}/report").raise_for_status().text
    assert "label_field=NAME" in page
    assert "--label-field NAME" not in page


def test_the_command_line_hears_of_commands(door: TestClient, tiny_services: Services, jobs: dict[str, str]) -> None:
    def through(request: httpx.Request) -> httpx.Response:
        sent = {"Content-Type": request.headers.get("Content-Type", "application/json")}
        answer = door.request(request.method, str(request.url), content=request.content, headers=sent)
        return httpx.Response(answer.status_code, content=answer.content)

    _, secret = access.create_token(tiny_services.database, "ops", [Scope.OPS])
    database = tiny_services.database
    with Onboard("http://localhost", secret, transport=httpx.MockTransport(through)) as client:
        for job in (jobs["done"], jobs["failed"]):
            assert client.job(job).document == full_document(database, find_job(database, job))
        listed = {job.id: job.document for job in client.jobs(limit=9)}
        assert listed[jobs["failed"]] == brief(find_job(database, jobs["failed"]))
        (failure,) = [event for event in client.events(jobs["failed"]) if "error" in event.document["numbers"]]
        assert failure.document["numbers"]["error"] == ERROR
        logged = client.log(jobs["failed"])["events"]
        assert [event["numbers"]["error"] for event in logged if "error" in event["numbers"]] == [ERROR]
        assert client.retry(jobs["failed"]).document["error"] == brief(find_job(database, jobs["failed"]))["error"]
