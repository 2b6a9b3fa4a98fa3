"""What goes wrong is a page with what mends it for people, and a problem for programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.browsing import EVIL, HTML, signed_in
from support.registry_samples import add_job, publish, register_sample_base

from onboard.api.access import routes_of
from onboard.api.guarding import SAFE_METHODS
from onboard.domain.access import ALL_SCOPES
from onboard.registry.services import Services
from onboard.versions.delete import delete_task

PROBLEM = "application/problem+json"


def page_of(answer: Any, status: int, *texts: str) -> str:
    """The text of a page with this status, which has these words on it."""
    assert (answer.status_code, answer.headers["content-type"]) == (status, "text/html; charset=utf-8"), answer.text
    assert 'role="alert"' in answer.text
    for text in texts:
        assert text in answer.text, text
    return str(answer.text)


@pytest.mark.parametrize("place", ["/nothing", "/jobs/1/x/", "/tasks/mood/x", "/jobs/0123456789ab", "/tasks/mood"])
def test_what_is_not_there_is_a_page_that_leads_on(browser: TestClient, place: str) -> None:
    page = page_of(browser.get(place), 404, 'href="/"', "Not found")
    assert re.findall(r'<a href="([^"]+)" data-key', page)[:2] == ["/", "/jobs"]
    for asked in (
        browser.get(place, headers={"Accept": "*/*"}),
        browser.get(place.rstrip("/") + ".json"),
        browser.get("/v1" + place),  # of programs, whatever they say that they take
    ):
        assert (asked.status_code, asked.headers["content-type"]) == (404, PROBLEM), asked.text


def test_what_is_not_possible_is_a_page_too(browser: TestClient) -> None:
    page_of(browser.post("/audit"), 405, "POST is not possible at /audit")
    page_of(browser.get("/tokens?all=perhaps"), 422, "It may be true or false.")
    page_of(browser.get("/jobs?state=broken"), 422, "&#39;queued&#39;", "&#39;dead&#39;")
    page_of(browser.get("/audit?before=yesterday"), 422)
    assert "<script>alert" not in page_of(browser.get(f"/tasks/{EVIL}/x"), 404)


def test_the_page_of_a_deleted_task_says_that_it_is_not_there(browser: TestClient, services: Services) -> None:
    register_sample_base(services.database)
    publish(services.database, "mood")
    assert browser.get("/tasks/mood").status_code == 200
    delete_task(services, "mood")
    page_of(browser.get("/tasks/mood"), 404, "mood")
    assert browser.get("/tasks/mood.json").json()["code"] == "not_found"


def test_a_fault_is_a_page_that_says_nothing_of_the_inside(
    browser: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("onboard.api.pages.jobs.jobs_page", lambda *_, **__: 1 / 0)
    page = page_of(browser.get("/jobs"), 500, "See the log of the service.")
    assert "division" not in page
    assert "division" in caplog.text


def test_another_name_and_another_site_are_refused_by_a_page(browser: TestClient, services: Services) -> None:
    add_job(services.database, "mood")
    stranger = page_of(browser.get("/jobs", headers={"Host": "evil.example"}), 421, 'href="/login"')
    assert "data-key" not in stranger
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "", "Origin": "http://evil.example"}):
        answer = browser.post("/jobs/matching", data={"change": "cancel"}, headers=headers)
        page_of(answer, 403, "from another site.")
    assert browser.get("/jobs.json").json()["counts"]["queued"] == 1


def test_who_changes_something_after_the_session_has_ended_gets_the_form(browser: TestClient) -> None:
    browser.cookies.clear()
    answer = browser.post("/queue/pause", data={"queue": "default"})
    assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "nothing was changed" in answer.text
    assert 'action="/login"' in answer.text
    assert browser.post("/queue/pause", headers={"Accept": "*/*"}).headers["content-type"] == PROBLEM


def forms(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Method and path of every route that may change something."""
    for route in routes_of(app):
        for method in getattr(route, "methods", None) or ():
            if method not in SAFE_METHODS:
                yield method, re.sub(r"\{\w+\}", "1", getattr(route, "path", ""))


def test_no_route_changes_anything_on_behalf_of_another_site(page_app: FastAPI, services: Services) -> None:
    """The cookie comes along with a link of another site: nothing else may rest on its staying away."""
    with signed_in(page_app, services.database, *ALL_SCOPES) as client:
        asked = list(forms(page_app))
        assert len(asked) > 30
        for method, path in asked:
            for site in ("cross-site", "same-site"):
                answer = client.request(method, path, headers={"Sec-Fetch-Site": site})
                assert answer.status_code == 403, f"{method} {path}"
        linked = client.get("/jobs", headers={**HTML, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
        assert (linked.status_code, "<h1>Jobs" in linked.text) == (200, True)
