"""Rows and labels of a task are changed over HTTP, in the browser and by the client, and leave a line in the log."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from submitting import submit
from support.refusals import require
from support.registry_samples import claim_job

from onboard.pipeline import run as pipeline
from onboard.registry.audit import entries
from onboard.registry.services import Services
from onboard.testing import RecordedProgress

LABELS = "/v1/tasks/weather/labels"


def learn(services: Services) -> None:
    """Run the job that waits."""
    pipeline.run(claim_job(services.database), services, RecordedProgress())


@pytest.fixture
def weather(door: TestClient, rows: bytes, tiny_services: Services) -> list[dict[str, Any]]:
    """The rows of a task that was learned here."""
    submit(door, rows, fast="true")
    learn(tiny_services)
    return [json.loads(line) for line in rows.splitlines()]


def sent(*rows: dict[str, Any]) -> dict[str, Any]:
    return {"dataset": ("more.jsonl", "".join(json.dumps(row) + "\n" for row in rows).encode())}


def last_change(services: Services) -> tuple[str, str]:
    with services.database.read() as session:
        (line,) = entries(session, 1)
    return line.action, line.subject


def test_rows_are_added_over_http_and_the_same_key_makes_one_job(
    door: TestClient, weather: list[dict[str, Any]], tiny_services: Services
) -> None:
    new = {"text": "hail on the roof", "label": weather[0]["label"]}
    headers, form = {"Idempotency-Key": "once"}, {"fast": "true"}
    answers = [
        door.post("/v1/tasks/weather/rows", files=sent(new, weather[0]), data=form, headers=headers) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [202, 202]
    job = answers[0].json()["job"]
    assert answers[1].json()["job"] == job
    assert answers[0].headers["location"] == f"/v1/jobs/{job}"
    assert answers[0].json()["change"]["counts"] == {"added": 1, "repeated": 1}
    assert "repeated_rows" in [warning["code"] for warning in answers[0].json()["warnings"]]
    assert last_change(tiny_services) == ("job.submit", job)
    learn(tiny_services)
    version = door.get("/v1/tasks/weather/embeddings/v2").json()
    assert version["change"]["action"] == "add"


@pytest.mark.parametrize(
    ("row", "form", "type_"),
    [
        ({"text": "fog", "label": "grey"}, {}, "unknown-label"),
        ({"text": "fog", "label": 0.5}, {"new_labels": "true"}, "unknown-label"),
        ({"text": "never said"}, {"remove": "true"}, "rows-not-in-task"),
        ({"text": "fog", "label": "grey"}, {"remove": "true", "replace": "true"}, "remove-with-others"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    door: TestClient, weather: list[dict[str, Any]], row: dict[str, Any], form: dict[str, str], type_: str
) -> None:
    answer = door.post("/v1/tasks/weather/rows", files=sent(row), data=form)
    assert answer.status_code == 422, answer.text
    require(answer.json(), type_)


def test_labels_are_listed_renamed_and_described_over_http(
    door: TestClient, weather: list[dict[str, Any]], tiny_services: Services
) -> None:
    listed = door.get(LABELS).json()["labels"]
    first, second = (part["label"] for part in listed)
    assert sum(part["rows"] for part in listed) == len(weather)
    renamed = door.post(LABELS, json={"action": "rename", "labels": [first], "to": "wet"})
    assert (renamed.status_code, renamed.json()["version"], renamed.json()["job"]) == (200, 2, None)
    assert last_change(tiny_services) == ("task.labels", "weather")
    assert door.get("/v1/tasks/weather").json()["latest"]["version"] == 1
    alias = "/v1/tasks/weather/aliases/latest"
    moved = door.put(alias, json={"version": 2, "as_before": True}, headers={"If-Match": '"v1"'}).json()
    assert moved["names"] == [["wet", first]]
    assert door.get(alias).json()["names"] == [["wet", first]]
    taken = door.post(LABELS, json={"action": "rename", "labels": ["wet"], "to": second})
    assert (taken.status_code, taken.json()["code"]) == (409, "conflict")
    gone = door.post(LABELS, json={"action": "delete", "labels": [second]})
    assert gone.status_code == 409
    said = door.post(
        LABELS, json={"action": "describe", "labels": ["wet"], "description": "rain or snow", "fast": True}
    )
    assert said.status_code == 202
    busy = door.post(LABELS, json={"action": "rename", "labels": ["wet"], "to": "damp"})
    assert (busy.status_code, said.json()["job"] in busy.json()["detail"]) == (409, True)
    assert door.get(LABELS).json()["labels"][-1]["description"] in (None, "rain or snow")
    assert {part["description"] for part in door.get(LABELS).json()["labels"]} == {None, "rain or snow"}


def test_rows_and_labels_are_changed_in_the_browser(
    door: TestClient, weather: list[dict[str, Any]], tiny_services: Services
) -> None:
    html = {"Accept": "text/html", "Origin": "http://localhost"}
    page = door.get("/tasks/weather/change", headers=html)
    assert (page.status_code, page.text.count('action="/tasks/weather/labels"')) == (200, 4)
    first = door.get(LABELS).json()["labels"][0]["label"]
    form = {"action": "rename", "label": first, "name": "wet"}
    answer = door.post("/tasks/weather/labels", data=form, headers=html, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/tasks/weather")
    shown = door.get("/tasks/weather", headers=html).text
    assert "is called" in shown
    new = sent({"text": "hail on the roof", "label": "wet"})
    answer = door.post("/tasks/weather/rows?key=abc", files=new, headers=html, follow_redirects=False)
    assert answer.headers["location"].startswith("/jobs/"), answer.text
    assert last_change(tiny_services)[0] == "job.submit"
