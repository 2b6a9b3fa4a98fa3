"""Carrying over HTTP: what one task or the next few become, within bounds, one request at a time."""

from __future__ import annotations

import httpx
import pytest
from fastapi.testclient import TestClient
from support.published import add_version, embedding_of
from support.tuned_heads import tuned_head

from onboard import bases
from onboard.bases import Base
from onboard.client import Onboard
from onboard.operations import access
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.versions.carry import MOST_TASKS, tasks

LABELS = ("sad", "glad"), ("bad", "good")
HARMLESS, HARMFUL = 1e-4, 3.0


@pytest.fixture
def stage(tiny_services: Services, tiny_base: Base) -> Services:
    """mood@v1 and the two shipped tasks, all of them behind the head."""
    add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(3))
    tuned_head(tiny_services, tiny_base, HARMLESS)
    return tiny_services


def latest(services: Services, task: str) -> int:
    with services.database.read() as session:
        return VersionRepository(session).resolve(task).version


def test_a_task_is_carried_once_and_then_there_is_nothing_to_do(door: TestClient, stage: Services) -> None:
    answer = door.post("/v1/tasks/mood/carry", json={"dry_run": True}).raise_for_status().json()
    assert (answer["dry_run"], answer["carried"][0]["version"], latest(stage, "mood")) == (True, None, 1)
    answer = door.post("/v1/tasks/mood/carry").raise_for_status().json()
    (carried,) = answer["carried"]
    assert (carried["task"], carried["from"], carried["version"], carried["hypernetwork_version"]) == ("mood", 1, 2, 2)
    assert (carried["guard"]["verdict"], answer["refused"], answer["next"]) == ("pass", [], None)
    assert door.get("/v1/tasks/mood").json()["latest"]["kind"] == "carried"
    again = door.post("/v1/tasks/mood/carry").raise_for_status().json()
    assert again == {"dry_run": False, "carried": [], "refused": [], "next": None}


def test_what_is_refused_is_told_with_its_reason_and_stays(door: TestClient, stage: Services, tiny_base: Base) -> None:
    tuned_head(stage, tiny_base, HARMFUL)
    answer = door.post("/v1/tasks/mood/carry").raise_for_status().json()
    assert (answer["carried"], [outcome["task"] for outcome in answer["refused"]]) == ([], ["mood"])
    assert "guard refuses it" in answer["refused"][0]["reason"]
    assert latest(stage, "mood") == 1


def test_all_tasks_are_carried_by_pages_whose_cursor_leads_on(door: TestClient, stage: Services) -> None:
    seen, cursor = [], None
    while True:
        page = door.post("/v1/carry", json={"limit": 2, "cursor": cursor}).raise_for_status().json()
        seen.append([outcome["task"] for outcome in page["carried"]])
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [["mood", "sst2"], ["stsb"]]
    assert door.post("/v1/carry").raise_for_status().json()["carried"] == []


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": MOST_TASKS + 1}, {"dry": True}, {"cursor": "odd"}])
def test_a_request_beyond_the_bounds_is_refused(door: TestClient, stage: Services, wrong: dict[str, object]) -> None:
    assert door.post("/v1/carry", json=wrong).status_code in (400, 422)
    assert latest(stage, "mood") == 1


def test_the_next_request_at_the_same_time_has_to_come_again(door: TestClient, stage: Services) -> None:
    with tasks.TURN:
        busy = door.post("/v1/tasks/mood/carry")
    assert (busy.status_code, busy.json()["code"], busy.headers["Retry-After"]) == (503, "unavailable", "5")
    assert door.post("/v1/tasks/nothing/carry").status_code == 404


def test_large_datasets_are_not_read_by_a_service_and_bases_are_read_once(
    door: TestClient, stage: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr("onboard.versions.carry.clearing.too_large", lambda services, version: asked.append(True))
    door.post("/v1/tasks/mood/carry", json={"dry_run": True}).raise_for_status()
    assert asked == [True]
    monkeypatch.setattr(bases, "folder_digest", lambda folder: 1 / 0)  # the base was read for the first one
    assert door.post("/v1/carry").raise_for_status().json()["carried"]


def test_the_client_tells_what_the_command_tells_beside_the_database(door: TestClient, stage: Services) -> None:
    def through(request: httpx.Request) -> httpx.Response:
        sent = {"Authorization": request.headers["Authorization"], "Content-Type": "application/json"}
        answer = door.request(request.method, request.url.path, content=request.content, headers=sent)
        return httpx.Response(answer.status_code, content=answer.content)

    _, secret = access.create_token(stage.database, "releases", ["promote"])
    pages: list[int] = []
    with Onboard("http://localhost", secret, transport=httpx.MockTransport(through)) as client:
        there = client.carry(dry_run=True, on_page=lambda page: pages.append(len(page.carried)))
        assert there.document == tasks.carry(stage, None, dry_run=True).to_document().to_json()
        assert pages == [3]
        assert (
            client.carry("mood", dry_run=True).document
            == tasks.carry(stage, "mood", dry_run=True).to_document().to_json()
        )
        assert client.carry("mood").carried[0].version == 2
