from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import waiting_child
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response
from submitting import submit
from support.callers import bearer
from support.refusals import require
from support.registry_samples import add_job

from onboard.api import intake
from onboard.api.app import create_app
from onboard.api.deps import encode_cursor
from onboard.data.hub import HubFiles
from onboard.data.snapshot import load
from onboard.domain.access import ALL_SCOPES
from onboard.domain.hub_terms import HubTerms
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.errors import NotFoundError
from onboard.jobs.many import jobs_page
from onboard.registry.audit import entries
from onboard.registry.jobs import JobRepository
from onboard.registry.retention import RetentionRepository
from onboard.registry.services import Services, open_services
from onboard.registry.snapshots import SnapshotRepository


def test_a_submission_is_a_job_with_its_place_and_owner(door: TestClient, app: FastAPI, rows: bytes) -> None:
    answer = submit(door, rows, priority="3")
    assert answer.status_code == 202
    job = door.get(answer.headers["location"]).json()
    assert (job["task"], job["state"], job["owner"]) == ("weather", "queued", "tester")
    assert job["waiting"]["remedy"]
    assert app.state.started == ["default"]


def test_a_check_shows_the_words_that_a_job_on_the_base_of_the_service_gives(door: TestClient) -> None:
    labels = ["The customer wants his money back. " * 4 + last for last in ("Now.", "Or not?")]
    rows = [{"text": f"day number {number}", "label": labels[number % 2]} for number in range(20)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    checked = door.post("/v1/check", files={"dataset": ("weather.jsonl", content)}).json()
    submitted = submit(door, content).json()
    for document in (checked, submitted):
        assert [(warning["code"], warning["count"]) for warning in document["warnings"]] == [("label_words", 2)]


def test_warnings_of_a_dataset_name_fields_of_the_form_and_keep_the_command(door: TestClient) -> None:
    rows = [{"text": f"day number {number}", "label": f"{number % 6},5"} for number in range(30)]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    checked = door.post("/v1/check", files={"dataset": ("weather.jsonl", content)}).json()
    submitted = submit(door, content).json()
    for document in (checked, submitted):
        remedies = [(warning["remedy"], warning.get("command", "")) for warning in document["warnings"]]
        assert any("kind=regression" in remedy and "--kind regression" in command for remedy, command in remedies), (
            remedies
        )
        assert not any("--" in remedy for remedy, _ in remedies)


def test_the_same_key_is_the_same_job(door: TestClient, rows: bytes) -> None:
    first, second = (submit(door, rows, key="night-7").json() for _ in range(2))
    assert first["job"] == second["job"]
    other = submit(door, rows, key="night-7", seed="1")
    assert (other.status_code, other.json()["code"]) == (409, "conflict")


def test_texts_without_labels_come_with_the_dataset(door: TestClient, tiny_services: Services, rows: bytes) -> None:
    def send(path: str, texts: bytes, key: str = "k") -> Response:
        files = {"dataset": ("weather.jsonl", rows), "unlabelled": ("more.csv", texts)}
        return door.post(path, files=files, headers={"Idempotency-Key": key})

    texts = b"text\nfoggy day\nwindy day\n"
    answer, again = send("/v1/jobs", texts), send("/v1/jobs", b"text\nwindy day\nfoggy day\n")
    assert (answer.status_code, again.json()["job"]) == (202, answer.json()["job"])
    assert send("/v1/jobs", b"text\nfoggy day\n").status_code == 409
    unlabelled = door.get(answer.headers["location"]).json()["spec"]["options"]["unlabelled"]
    assert (unlabelled["read"], unlabelled["considered"]) == (2, 2)
    with tiny_services.database.read() as session:
        record = SnapshotRepository(session).get(unlabelled["digest"])
    stored = load(tiny_services.read(record.artifact))
    assert [row.text_a for row in stored.train] == ["foggy day", "windy day"]
    for path in ("/v1/jobs", "/v1/check"):
        wrong = send(path, b"words\nfoggy\n", "other")
        assert (wrong.status_code, wrong.json()["problems"][0]["file"]) == (422, "more.csv")
    schema = door.get("/openapi.json").json()["paths"]["/v1/jobs"]["post"]["requestBody"]["content"]
    assert "unlabelled" in schema["multipart/form-data"]["schema"]["properties"]


@pytest.mark.parametrize(
    "name", ["Wetter Süd.jsonl", "wetter süd.jsonl", "C:\\tmp\\Wetter Süd.jsonl", "wetter.v2.jsonl"]
)
def test_a_file_that_cannot_name_a_task_is_refused_with_a_proposal_and_never_renamed(
    door: TestClient, rows: bytes, name: str
) -> None:
    refused = door.post("/v1/jobs", files={"dataset": (name, rows)})
    assert (refused.status_code, refused.json()["code"]) == (422, "input")
    proposed = re.findall(r"for example ([a-z0-9-]+)", refused.json()["remedy"])[0]
    accepted = door.post("/v1/jobs", files={"dataset": (name, rows)}, data={"task": proposed})
    assert (accepted.status_code, accepted.json()["task"]) == (202, proposed)


def test_a_large_dataset_is_checked_by_a_child_that_knows_who_asked(
    door: TestClient, rows: bytes, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "SMALL_BYTES", 0)
    assert submit(door, rows).status_code == 202
    with tiny_services.database.read() as session:
        done = entries(session, 1)[0]
    assert done.action == "job.submit"
    assert done.actor.startswith("tester ")
    wrong = submit(door, b'{"text": "", "label": "a"}\n')
    assert (wrong.status_code, wrong.json()["problems"][0]["row"]) == (422, 1)


@pytest.mark.parametrize("dataset", [(None, "hf://owner/reviews"), ("weather.jsonl", b'{"text": "a", "label": "b"}')])
def test_any_dataset_is_read_by_a_child_whatever_its_size(
    door: TestClient, monkeypatch: pytest.MonkeyPatch, dataset: tuple[str | None, str | bytes]
) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.say_who)
    answer = door.post("/v1/check", files={"dataset": dataset})
    process, read = answer.json()["detail"].split(", ")
    assert answer.status_code == 422
    assert read.endswith(str(dataset[0] or dataset[1]))
    assert int(process) != os.getpid()


def test_a_dataset_of_the_hub_is_read_only_from_owners_that_the_settings_allow(
    door: TestClient, app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "call_in_child", lambda _left, _bounds, do, *args, **kwargs: do(*args, **kwargs))
    seen: list[tuple[object, ...]] = []

    def fetch(*given: object, keep: bool) -> HubFiles:
        seen.append((*given, keep))
        raise NotFoundError("There is none.")

    for path in ("/v1/check", "/v1/jobs"):
        answer = door.post(path, files={"dataset": (None, "hf://owner/reviews")}, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
        assert answer.json()["repository"] == "owner/reviews"
    monkeypatch.setattr("onboard.data.hub.fetch", fetch)
    assert door.post("/v1/check", files={"dataset": (None, "hf://owner/reviews")}).status_code == 404
    (_, _, folder, terms, keep) = seen[0]
    assert (terms, keep) == (HubTerms(), False)
    assert isinstance(folder, Path)
    assert folder.is_relative_to(app.state.uploads)
    assert not folder.exists()
    assert list(app.state.uploads.iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"seed": "x"}, "seed"),
        ({"task": "../up"}, "task"),
        ({"base": "/etc"}, "base"),
        ({"queue": "a b"}, "queue"),
        ({"time_limit": "-1"}, "time_limit"),
        ({"dataset": "hf://x"}, "dataset"),
        ({"surprise": "1"}, "surprise"),
        ({"seed": ["1", "2"]}, "seed"),
        ({"labels": "a,,b"}, "labels"),
        ({"tune_hypernetwork": "perhaps"}, "tune_hypernetwork"),
    ],
)
def test_a_wrong_field_is_named(door: TestClient, rows: bytes, fields: dict[str, Any], field: str) -> None:
    answer = submit(door, rows, **fields)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "input", field)
    assert door.get("/v1/jobs").json()["jobs"] == []


def test_pages_of_jobs_are_whole_and_without_repeats(door: TestClient, tiny_services: Services, rows: bytes) -> None:
    first = submit(door, rows).json()["job"]
    with tiny_services.database.write() as session:
        jobs = JobRepository(session)
        made = [first] + [jobs.add(jobs.get(first).spec)[0].id for _ in range(4)]
    seen, cursor = [], None
    while True:
        page = door.get("/v1/jobs", params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        seen += [job["job"] for job in page["jobs"]]
        if (cursor := page["next"]) is None:
            break
    assert seen == made[::-1]


@pytest.mark.parametrize("sort", list(JobOrder))
def test_jobs_are_listed_in_the_order_asked_for_page_by_page(
    door: TestClient, tiny_services: Services, sort: JobOrder
) -> None:
    for number in range(5):
        add_job(tiny_services.database, f"task-{number % 3}")
    cursor, listed = None, []
    while cursor or not listed:
        page = door.get("/v1/jobs", params={"limit": 2, "sort": sort, **({"cursor": cursor} if cursor else {})}).json()
        listed += [job["job"] for job in page["jobs"]]
        cursor = page["next"]
    assert listed == [job.id for job in jobs_page(tiny_services.database, JobSearch(), None, 9, sort).jobs]
    assert len(listed) == 5


def test_a_place_in_one_order_is_none_in_another(door: TestClient, tiny_services: Services) -> None:
    for _ in range(2):
        add_job(tiny_services.database, "mood")
    place = door.get("/v1/jobs", params={"limit": 1, "sort": "longest-wait"}).json()["next"]
    refused = door.get("/v1/jobs", params={"cursor": place})
    assert (refused.status_code, refused.json()["field"]) == (422, "cursor")


@pytest.mark.parametrize("cursor", ["", "x", "é", "AAAA", "W10", "eyJhIjoxfQ", "WyJqb2JzIixbXV0", "WyJqb2JzIiwieCJd"])
def test_a_foreign_cursor_is_refused(door: TestClient, cursor: str) -> None:
    answer = door.get("/v1/jobs", params={"cursor": cursor})
    assert (answer.status_code, answer.json()["field"]) == (422, "cursor")


def foreign_characters(door: TestClient) -> Iterator[Response]:
    """Answers where a client sent text that a database cannot hold."""
    for edge in ("\0", "\ud800"):
        yield door.get("/v1/jobs", params={"cursor": encode_cursor("jobs", edge)})
        yield door.get("/v1/tasks", params={"cursor": encode_cursor("tasks", edge)})
    yield door.get("/v1/jobs?owner=%00")
    yield door.post("/v1/workers/%00/drain")
    yield door.delete("/v1/tokens/%00")


def test_what_a_database_cannot_hold_is_no_fault(door: TestClient) -> None:
    assert {answer.status_code for answer in foreign_characters(door)} <= {200, 404, 422}


@pytest.mark.services
def test_what_postgresql_cannot_hold_is_no_fault(postgres_door: tuple[TestClient, Services]) -> None:
    answers = list(foreign_characters(postgres_door[0]))
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(422, "input")] * 7


@pytest.mark.services
def test_no_dataset_keeps_postgresql_from_collecting_garbage(postgres_door: tuple[TestClient, Services]) -> None:
    door, services = postgres_door
    column = "la\0bel"
    odd_rows = [{"text": f"day\0 {n} {word}", column: word} for n in range(20) for word in ("good", "bad")]
    odd = submit(door, "".join(json.dumps(row) + "\n" for row in odd_rows).encode(), label_field=column)
    assert (odd.status_code, odd.json()["code"]) == (422, "dataset")
    fine = "".join(json.dumps({"text": row["text"], "label": row[column]}) + "\n" for row in odd_rows)
    assert submit(door, fine.encode()).status_code == 202
    with services.database.write() as session:
        assert RetentionRepository(session).snapshots() == 0


def events(text: str) -> list[dict[str, str]]:
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in text.split("\n\n") if block]


def test_a_reader_that_was_cut_off_goes_on_after_its_last_event(door: TestClient, rows: bytes) -> None:
    job = submit(door, rows).json()["job"]
    assert door.post(f"/v1/jobs/{job}/cancel").json()["state"] == "cancelled"
    seen = events(door.get(f"/v1/jobs/{job}/events").text)
    assert [event["event"] for event in seen] == ["state", "state", "end"]
    assert json.loads(seen[-1]["data"])["state"] == "cancelled"
    later = events(door.get(f"/v1/jobs/{job}/events", headers={"Last-Event-ID": seen[0]["id"]}).text)
    assert later == seen[1:]
    done = door.get(f"/v1/jobs/{job}/events", headers={"Last-Event-ID": seen[1]["id"]})
    assert (done.status_code, done.text) == (204, "")


def test_a_finished_job_cannot_be_cancelled_but_retried(door: TestClient, app: FastAPI, rows: bytes) -> None:
    job = submit(door, rows).json()["job"]
    door.post(f"/v1/jobs/{job}/cancel")
    assert door.post(f"/v1/jobs/{job}/cancel").status_code == 409
    again = door.post(f"/v1/jobs/{job}/retry", json={"time_limit": 60})
    assert (again.json()["state"], again.json()["time_limit_seconds"]) == ("queued", 60)
    assert app.state.started == ["default", "default"]


def test_no_answer_tells_where_an_upload_lay(door: TestClient, rows: bytes) -> None:
    answer = door.post("/v1/check", files={"dataset": ("weather.jsonl", rows)})
    assert answer.json()["source"] == "weather.jsonl"
    assert "/uploads/" not in answer.text


@pytest.fixture
def postgres_door(
    app: FastAPI, tiny_services: Services, postgres_url: str, tmp_path: Path
) -> Iterator[tuple[TestClient, Services]]:
    """The door to a deployment whose registry is in PostgreSQL, and that deployment."""
    more = {"database_url": postgres_url, "broker_url": "filesystem://", "home": tmp_path / "grown"}
    services = open_services(tiny_services.settings.model_copy(update=more))
    headers = bearer(services.database, *ALL_SCOPES)
    with TestClient(create_app(services.settings), "http://localhost", headers=headers) as client:
        yield client, services
    services.close()


@pytest.mark.services
def test_jobs_go_their_way_on_postgresql_too(postgres_door: tuple[TestClient, Services], rows: bytes) -> None:
    door, services = postgres_door
    first = submit(door, rows, key="night-7")
    assert submit(door, rows, key="night-7").json()["job"] == first.json()["job"]
    assert submit(door, rows, key="night-7", seed="1").json()["code"] == "conflict"
    second = submit(door, rows, queue="nightly").json()["job"]
    page = door.get("/v1/jobs", params={"limit": 1}).json()
    rest = door.get("/v1/jobs", params={"limit": 1, "cursor": page["next"]}).json()
    assert [job["job"] for job in (*page["jobs"], *rest["jobs"])] == [second, first.json()["job"]]
    assert [job["job"] for job in door.get("/v1/jobs", params={"queue": "nightly"}).json()["jobs"]] == [second]
    assert door.post(f"/v1/jobs/{second}/cancel").json()["state"] == "cancelled"
    seen = events(door.get(f"/v1/jobs/{second}/events").text)
    assert [event["event"] for event in seen] == ["state", "state", "end"]
    assert door.post(f"/v1/jobs/{second}/retry", json={}).json()["state"] == "queued"
    queued = {status["queue"]: status["queued"] for status in door.get("/v1/queue").json()["queues"]}
    assert queued == {"default": 1, "nightly": 1}
    with services.database.read() as session:
        assert [entry.action for entry in entries(session, 3)] == ["job.retry", "job.cancel", "job.submit"]


def test_labels_alone_are_a_submission(door: TestClient) -> None:
    fields = {
        "task": (None, "tone"),
        "labels": (None, "praise,complaint"),
        "label_description": (None, "praise=thanks"),
    }
    answer = door.post("/v1/jobs", files=fields)
    assert answer.status_code == 202, answer.text
    spec = door.get(f"/v1/jobs/{answer.json()['job']}").json()["spec"]
    assert (spec["task"], spec["method"], spec["options"]["label_description"]) == ("tone", "linear", ["praise=thanks"])
    checked = door.post("/v1/check", files=fields).json()
    assert (checked["rows"]["train"], [label["label"] for label in checked["labels"]]) == (0, ["praise", "complaint"])


@pytest.mark.parametrize(
    ("left_out", "type_", "remedy", "command"),
    [
        ("labels", "dataset-missing", "task=NAME labels=A,B", "--task NAME --labels A,B"),
        ("task", "task-name-missing", "task=NAME", "--task NAME"),
    ],
)
def test_without_a_file_task_and_labels_are_needed(
    door: TestClient, left_out: str, type_: str, remedy: str, command: str
) -> None:
    fields = {"task": (None, "tone"), "labels": (None, "praise,complaint")}
    del fields[left_out]
    for route in ("/v1/jobs", "/v1/check"):
        answer = door.post(route, files=fields)
        assert answer.status_code == 422
        require(answer.json(), type_)
        assert answer.json()["remedy"].endswith(remedy)
        assert answer.json()["command"].endswith(command)


@pytest.mark.parametrize(
    ("field", "value", "type_"),
    [
        ("rows", "3", "option-needs-rows"),
        ("labels", "praise", "labels-too-few"),
        ("labels", "praise,praise", "label-repeated"),
        ("label_field", "tone", "option-needs-rows"),
        ("method", "compacter", "option-without-rows"),
        ("tune_hypernetwork", "always", "option-without-rows"),
    ],
)
def test_an_error_over_http_names_fields_and_for_commands_options(
    door: TestClient, field: str, value: str, type_: str
) -> None:
    fields = {"task": (None, "tone"), "labels": (None, "praise,complaint"), field: (None, value)}
    problem = door.post("/v1/jobs", files=fields).json()
    require(problem, type_, field=field)
    assert "--" not in problem["detail"] + problem["remedy"]
    if type_.startswith("option-"):
        assert f"--{field.replace('_', '-')}" in problem["message"]


def test_a_page_sends_a_description_a_line(door: TestClient) -> None:
    fields = {
        "task": (None, "tone"), "labels": (None, "praise,complaint"), "dataset": (None, ""), "text_field": (None, ""),
        "label_description": (None, "praise=thanks\r\n\r\n complaint=it fails \r\n"),
    }  # fmt: skip
    answer = door.post("/submit?key=once", files=fields, follow_redirects=False)
    assert answer.status_code == 303, answer.text
    spec = door.get(f"/v1/jobs/{answer.headers['location'].rsplit('/', 1)[-1]}").json()["spec"]
    assert spec["options"]["label_description"] == ["praise=thanks", "complaint=it fails"]
