"""Submitting a dataset from a page: checked first, then one job however often the form is sent."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.browsing import EVIL, signed_in, without_quoted_scripts

from onboard.domain.access import Scope
from onboard.domain.job import Job
from onboard.registry.services import Services

ROWS = b"".join(b'{"text": "%s day number %d", "label": "%s"}\n' % (word, number, label) for number in range(20)
                for word, label in ((b"sunny", b"good"), (b"rainy", b"bad")))  # fmt: skip
NOTHING = {"validation": ("", b""), "test": ("", b""), "unlabelled": ("", b"")}  # as browsers send what nobody chose
BLANK = {"task": "", "labels": "", "shots": "", "text_field": ["", ""], "kind": "auto", "seed": "0"}


def send(browser: TestClient, place: str, rows: bytes = ROWS, name: str = "weather.jsonl", **fields: Any) -> Any:
    return browser.post(place, files={"dataset": (name, rows), **NOTHING}, data={**BLANK, **fields})


def test_the_form_has_every_field_that_the_command_takes(browser: TestClient) -> None:
    page = browser.get("/submit?task=weather").text
    names = set(re.findall(r'name="(\w+)"', page))
    document = browser.get("/submit.json").json()
    assert {field["name"] for field in document["fields"]} <= names
    assert 'value="weather"' in page
    keys = {re.findall(r'action="/submit\?key=(\w+)"', browser.get("/submit").text)[0] for _ in range(2)}
    assert len(keys) == 2


def test_a_dataset_is_checked_and_nothing_is_queued(browser: TestClient) -> None:
    page = send(browser, "/submit/check").text
    for text in ("40 training rows", "nothing was queued", "good", "weather"):
        assert text in page
    assert browser.get("/jobs.json").json()["jobs"] == []


def test_what_is_wrong_is_told_by_row_with_its_remedy(browser: TestClient) -> None:
    rows = ROWS + b'{"text": "", "label": "good"}\n'
    for place in ("/submit/check", "/submit?key=1"):
        answer = send(browser, place, rows)
        assert answer.status_code == 422
        assert re.search(r"<td>41</td><td>text</td>", answer.text), answer.text
    inside = browser.post(
        "/submit/check",
        files={"dataset": ("weather.jsonl", rows)},
        headers={"HX-Request": "true", "HX-Target": "checks"},
    )
    assert '<div id="checks"' in inside.text
    assert send(browser, "/submit/check", rows=b"", name="").status_code == 422  # no file was chosen
    assert send(browser, "/submit/check", kind="odd").status_code == 422


def test_an_error_without_rows_names_the_fields_of_the_form(browser: TestClient) -> None:
    nothing = {"rows": b"", "name": "", "task": "tone"}
    missing = send(browser, "/submit/check", **nothing).text
    given = send(browser, "/submit/check", **nothing, labels="good,bad", shots="", label_field="tone").text
    assert "task=NAME labels=A,B" in missing
    assert "--" not in re.findall(r"<strong[^>]*>(.*?)</strong>", given)[0]
    assert "label_field" in given


def test_the_same_form_sent_twice_is_one_job(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch, page_app: FastAPI
) -> None:
    taken: list[Any] = []

    def submit(submission: Any, owner: str, content_bytes: int, left: Any) -> tuple[Any, None]:
        taken.append((submission.key, submission.task, owner))
        return Jobs.made(submission.key), None

    monkeypatch.setattr(page_app.state.intake, "submit", submit)
    first, second = (send(browser, "/submit?key=once") for _ in range(2))
    assert (first.status_code, first.headers["location"]) == (303, "/jobs/once")
    assert second.headers["location"] == first.headers["location"]
    assert taken == [("once", "weather", "tester")] * 2
    inside = browser.post("/submit?key=2", files={"dataset": ("weather.jsonl", ROWS)}, headers={"HX-Request": "true"})
    assert (inside.status_code, inside.headers["hx-redirect"]) == (200, "/jobs/2")


class Jobs:
    """What the intake would have queued."""

    @staticmethod
    def made(key: str) -> Job:
        job: Any = type("Job", (), {"id": key, "queue": "default"})
        return job


def test_an_upload_without_a_key_is_refused(browser: TestClient) -> None:
    assert send(browser, "/submit").status_code == 422


def test_who_may_only_read_submits_nothing(reader: TestClient) -> None:
    assert reader.get("/submit").status_code == 403
    assert send(reader, "/submit?key=1").status_code == 403
    assert 'href="/submit"' not in reader.get("/").text


def test_what_users_wrote_is_text_among_the_checks(page_app: FastAPI, services: Services) -> None:
    rows = ROWS.replace(b"good", EVIL.encode().replace(b'"', b'\\"'))
    with signed_in(page_app, services.database, Scope.SUBMIT) as client:
        without_quoted_scripts(send(client, "/submit/check", rows).text)
        without_quoted_scripts(send(client, "/submit/check", name=f"{EVIL.replace('/', '')}.jsonl").text)
        without_quoted_scripts(client.get("/submit", params={"task": EVIL}).text)
