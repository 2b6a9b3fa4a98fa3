"""The frame of the pages and the overview, asked for as a browser does."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.browsing import EVIL, fail, signed_in, without_quoted_scripts
from support.registry_samples import add_job
from support.watched_jobs import running, worker

from onboard.api.pages.assets import FOLDER
from onboard.domain.access import Scope
from onboard.registry.services import Services


def test_what_is_vendored_is_what_its_list_says() -> None:
    listed = json.loads((FOLDER / "vendored.json").read_text())
    assert {entry["file"] for entry in listed} == {
        path.name for pattern in ("htmx*", "swagger-ui*") for path in FOLDER.glob(pattern)
    }
    for entry in listed:
        assert hashlib.sha256((FOLDER / entry["file"]).read_bytes()).hexdigest() == entry["sha256"], entry["file"]


def test_files_of_pages_are_kept_for_ever_by_their_digest(browser: TestClient) -> None:
    page = browser.get("/").text
    places = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(places) == 4
    total = len(page.encode())
    for place in places:
        answer = browser.get(place)
        assert "immutable" in answer.headers["cache-control"]
        total += len(answer.content)
    assert total < 150_000
    assert "immutable" not in browser.get(places[0].partition("?")[0]).headers["cache-control"]
    assert browser.get("/static/..%2fassets.py").status_code == 404
    assert browser.get("/static/vendored.json").status_code == 404


def test_a_page_has_no_script_of_its_own_and_loads_nothing_from_elsewhere(browser: TestClient) -> None:
    page = browser.get("/").text
    assert re.findall(r"<script(?! src=\"/static/)", page) == []
    assert re.findall(r"\son\w+=|javascript:|https?://", page) == []
    assert '"allowEval":false' in page


def test_an_empty_service_teaches_the_next_command(browser: TestClient) -> None:
    page = browser.get("/").text
    for command in ("onboard worker", "onboard submit FILE", "onboard queue show --watch"):
        assert f"<code>{command}</code>" in page


def test_the_overview_shows_queues_workers_and_failures(browser: TestClient, services: Services) -> None:
    database = services.database
    for row in (1, 2, 3):
        fail(database, f"mood{row}", f"Row {row} has no label.")
    fail(database, "other", "The disk is full.")
    gpu = {"name": "H100", "memory_used_bytes": 2**30, "memory_total_bytes": 2**33, "utilization_ratio": 0.5}
    worker(database, "w9", device="cuda:0", gpus=[gpu], resident_bytes=2**28)
    job = running(database, "w9", ago=30, note="step 3 of 9")
    add_job(database, "later")
    page = browser.get("/").text
    for text in ("3 × Row 3 has no label.", "1 × The disk is full.", "w9", "50% busy", "268.4 MB resident", "later"):
        assert text in page
    assert f'href="/jobs/{job.id}"' in page
    document = browser.get("/overview.json").json()
    assert [group["count"] for group in document["failures"]] == [1, 3]
    assert document["queues"][0]["queued"] == 1


def test_what_users_wrote_is_text_on_the_page(browser: TestClient, services: Services) -> None:
    database = services.database
    fail(database, "evil", EVIL, remedy=f"`{EVIL}`")
    worker(database, EVIL, device=EVIL, gpu_reason=EVIL, gpus=[{"name": EVIL}])
    running(database, EVIL, note=EVIL)
    page = without_quoted_scripts(browser.get("/").text)
    assert page.count("&lt;script&gt;alert") >= 6
    assert 'value="<' not in page


def test_who_may_only_read_sees_no_buttons_and_is_refused(reader: TestClient, services: Services) -> None:
    worker(services.database, "w1")
    job = running(services.database, "w1")
    page = reader.get("/").text
    assert re.findall(r'action="([^"]+)"', page) == ["/logout"]
    for place, form in (("/queue/pause", {"queue": "default"}), (f"/jobs/{job.id}/cancel", {})):
        answer = reader.post(place, data=form)
        assert (answer.status_code, "lacks the scope" in answer.text or "scope" in answer.text) == (403, True)


def test_buttons_change_what_they_say_and_lead_back(browser: TestClient, services: Services) -> None:
    worker(services.database, "w1")
    failed = fail(services.database, "mood", "Bad.")
    assert 'action="/queue/pause"' in browser.get("/").text
    answer = browser.post("/queue/pause", data={"queue": "default", "back": "/?a=1"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?a=1")
    page = browser.get("/").text
    assert 'action="/queue/resume"' in page
    assert 'action="/queue/pause"' not in page
    browser.post("/queue/resume", data={"queue": "default"})
    browser.post("/workers/drain", data={"worker": "w1"})
    browser.post(f"/jobs/{failed}/retry")
    document = browser.get("/overview.json").json()
    assert document["workers"][0]["state"] == "draining"
    assert (document["queues"][0]["paused"], document["queues"][0]["queued"]) == (False, 1)
    browser.post(f"/jobs/{failed}/cancel")
    assert browser.get("/overview.json").json()["queues"][0]["queued"] == 0


@pytest.mark.parametrize("place", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "x"])
def test_no_form_leads_to_another_site(browser: TestClient, place: str) -> None:
    answer = browser.post("/queue/pause", data={"queue": "default", "back": place})
    assert answer.headers["location"] == "/"


def test_another_site_changes_nothing(browser: TestClient) -> None:
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        answer = browser.post("/queue/pause", data={"queue": "default"}, headers=headers)
        assert answer.status_code == 403
    assert browser.get("/overview.json").json()["queues"][0]["paused"] is False


def test_what_went_wrong_is_a_page_with_its_remedy(browser: TestClient) -> None:
    for place, form, status in (
        ("/workers/drain", {"worker": EVIL}, 404),
        ("/queue/pause", {"queue": EVIL}, 422),
        ("/jobs/0123456789ab/cancel", {}, 404),
    ):
        answer = browser.post(place, data=form)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert 'role="alert"' in answer.text
        assert "<script>alert" not in answer.text
    assert browser.post("/queue/pause", headers={"Accept": "*/*"}).json()["code"] == "input"


def test_who_may_not_read_is_told_what_he_may(page_app: FastAPI, services: Services) -> None:
    with signed_in(page_app, services.database, Scope.SUBMIT) as client:
        page = client.get("/")
        assert (page.status_code, "submit" in page.text) == (200, True)
        assert client.get("/overview.json").status_code == 403


def test_a_session_that_is_over_gets_the_form(browser: TestClient, services: Services) -> None:
    assert browser.post("/logout").headers["location"] == "/login"
    assert browser.get("/").status_code == 401
