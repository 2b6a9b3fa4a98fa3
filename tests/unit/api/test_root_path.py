"""A path prefix before the service: cut off by the proxy or not, and on every address that a browser gets to see."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient
from support.guarded_door import HERE, opened
from support.refusals import refused
from support.registry_samples import add_job

from onboard.api.app import create_app
from onboard.domain.access import ALL_SCOPES
from onboard.operations.access import create_token
from onboard.registry.services import Services
from onboard.settings import Settings

ROOT = "/at/onboard"
PLACES = (
    "/", "/jobs", "/jobs/mood", "/tasks", "/tasks/mood", "/tasks/mood/compare?a=v1&b=v2", "/hypernetworks",
    "/hypernetworks/1", "/map", "/submit", "/tokens", "/audit", "/webhooks", "/docs", "/nothing",
)  # fmt: skip
_ADDRESS = re.compile(r'\b(?:href|src|action|formaction|hx-get|hx-post|data-live|value)="(/[^"]*)"')


@pytest.fixture
def below(stage: Services) -> Iterator[TestClient]:
    """A browser that has signed in below the prefix, which its proxy cuts off."""
    with opened(stage, root_path=ROOT) as client:
        secret = create_token(stage.database, "tester", list(ALL_SCOPES))[1]
        answer = client.post("/login", data={"token": secret, "place": "/jobs"}, headers=HERE)
        assert (answer.status_code, answer.headers["location"]) == (303, f"{ROOT}/jobs")
        assert f"Path={ROOT};" in answer.headers["set-cookie"]
        client.cookies.set("onboard_session", client.cookies["onboard_session"], domain="localhost.local", path="/")
        client.headers["Accept"] = "text/html"
        yield client


def test_every_address_on_every_page_is_below_the_prefix(below: TestClient, stage: Services) -> None:
    add_job(stage.database, "mood")
    seen = 0
    for place in PLACES:
        for asked in (place, ROOT + place):
            answer = below.get(asked)
            assert answer.status_code == (404 if place == "/nothing" else 200), asked
            addresses = _ADDRESS.findall(answer.text.replace('name="back" value="/', 'name="back" value="'))
            assert [address for address in addresses if not address.startswith(f"{ROOT}/")] == [], asked
            seen += len(addresses)
    assert seen > 300


def test_an_address_of_a_page_leads_there(below: TestClient) -> None:
    page = below.get("/").text
    for address in set(_ADDRESS.findall(page)) - {f"{ROOT}/logout", f"{ROOT}/live?of=overview"}:
        if address.startswith(ROOT):
            assert below.get(address.replace("&amp;", "&")).status_code in (200, 405), address


def test_what_was_changed_leads_back_below_the_prefix(below: TestClient) -> None:
    answer = below.post("/queue/pause", data={"queue": "default", "back": "/jobs"}, headers=HERE)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{ROOT}/jobs")
    answer = below.post(f"{ROOT}/logout", headers=HERE)
    assert answer.headers["location"] == f"{ROOT}/login"
    assert f"Path={ROOT};" in answer.headers["set-cookie"]


def test_programs_find_the_prefix_in_headers_and_in_the_description(below: TestClient) -> None:
    answer = below.get(f"{ROOT}/v1/tasks/mood/embeddings/latest")
    assert answer.headers["content-location"] == f"{ROOT}/v1/tasks/mood/embeddings/v2"
    assert below.get("/openapi.json").json()["servers"] == [{"url": ROOT}]


def test_who_is_not_signed_in_gets_a_form_that_works_below_the_prefix(below: TestClient) -> None:
    below.cookies.clear()
    for path in ("/tasks/mood", f"{ROOT}/tasks/mood"):
        answer = below.get(path)
        assert answer.status_code == 401
        assert f'action="{ROOT}/login"' in answer.text
        assert 'name="place" value="/tasks/mood"' in answer.text
    assert f'action="{ROOT}/login"' in below.post("/login", data={"token": "x"}, headers=HERE).text


@pytest.mark.parametrize("given", ["onboard", "/a b", "/a//b", "http://x/y", "/../x", "/a/./b", "/a?b", "/ä", "//x"])
def test_what_is_not_a_path_is_refused(given: str) -> None:
    with refused("root-path-invalid"):
        Settings(root_path=given)


def test_a_slash_at_the_end_means_the_same_and_none_at_all_means_no_prefix() -> None:
    assert Settings(root_path=" /a/b/ ").root_path == "/a/b"
    assert Settings(root_path="/").root_path == Settings(root_path="").root_path == ""


def test_a_prefix_where_the_service_has_a_page_is_refused() -> None:
    for taken in ("/jobs", "/v1", "/static", "/v1/tasks"):
        with refused("root-path-taken"):
            create_app(Settings(root_path=taken))
