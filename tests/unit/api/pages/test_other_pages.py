"""Map, hypernetworks, tokens, audit, webhooks."""

from __future__ import annotations

import re
import threading

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.browsing import EVIL, signed_in, without_quoted_scripts
from support.registry_samples import ARTIFACT, BASE, register_sample_base

from onboard.domain.access import ALL_SCOPES, Scope
from onboard.domain.task import HypernetworkVersion
from onboard.errors import SignInError, StorageError
from onboard.operations.access import create_token, identify_session, offer_code, sign_in_by_code
from onboard.registry.bases import BaseRepository
from onboard.registry.database import Database
from onboard.registry.outbox import OutboxRepository
from onboard.registry.services import Services
from onboard.versions.likeness import Traits
from onboard.versions.task_map import STORED, Mapped

PAGES = ("/", "/jobs", "/tasks", "/map", "/hypernetworks", "/priors", "/submit", "/tokens", "/audit", "/webhooks")
GUARD = {
    "verdict": "accepted",
    "tasks": [{"task": EVIL, "verdict": "pass", "increase": 0.001, "low": 0.0, "high": 0.01, "rows": 90, "flipped": 1}],
}


@pytest.fixture
def database(services: Services, monkeypatch: pytest.MonkeyPatch) -> Database:
    """With a base whose second hypernetwork the guard let through."""
    monkeypatch.setattr("onboard.api.routes.hypernetworks._default_digest", lambda _: BASE)
    register_sample_base(services.database)
    tuned = HypernetworkVersion(
        base_digest=BASE, version=2, artifact=ARTIFACT, digest=ARTIFACT, parent=1, metrics={"guard": GUARD}
    )
    with services.database.write() as session:
        BaseRepository(session).advance(tuned, expected_head=1)
    return services.database


def test_the_frame_leads_to_every_page_that_one_may_see(
    browser: TestClient, database: Database, page_app: FastAPI, services: Services
) -> None:
    leads = re.findall(r'<a href="([^"]+)" data-key', browser.get("/").text)
    assert leads == [*PAGES, "/docs"]  # which shows what has no command
    for place in PAGES:
        page = browser.get(place)
        assert page.status_code == 200, place
        assert page.text.count('aria-current="page"') == 1, place
        (twin,) = re.findall(r'href="(/[^"]*\.json[^"]*)">JSON', page.text)
        assert browser.get(twin).headers["content-type"] == "application/json", twin
        assert "same as <code>onboard " in page.text, place
    with signed_in(page_app, services.database, Scope.SUBMIT) as client:
        assert re.findall(r'<a href="([^"]+)" data-key', client.get("/").text) == ["/submit"]


def test_the_line_of_hypernetworks_and_back(browser: TestClient, database: Database) -> None:
    page = browser.get("/hypernetworks").text
    assert re.findall(r">v(\d)</a>(?: <span class=\"badge good\">head)?", page) == ["2", "1"]
    one = without_quoted_scripts(browser.get("/hypernetworks/2").text)
    assert "/revert" not in one
    assert 'action="/hypernetworks/1/revert"' in browser.get("/hypernetworks/1").text
    answer = browser.post("/hypernetworks/1/revert", data={"base": BASE})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/hypernetworks/1?base={BASE}")
    document = browser.get("/hypernetworks.json").json()
    assert [one["head"] for one in document["hypernetworks"]] == [True, False]
    assert browser.get("/hypernetworks/9").status_code == 404


def test_a_token_is_shown_once_and_ended(browser: TestClient) -> None:
    answer = browser.post("/tokens", data={"name": "shop", "scope": ["read", "submit"], "expires": "12h"})
    (secret,) = re.findall(r"onb_[\w-]{43}", answer.text)
    page = browser.get("/tokens").text
    assert secret not in page
    assert "shop" in page
    (token,) = [token for token in browser.get("/tokens.json").json()["tokens"] if token["name"] == "shop"]
    assert token["scopes"] == ["submit", "read"]
    assert browser.post("/tokens/revoke", data={"token": token["id"]}).headers["location"] == "/tokens"
    assert "shop" not in browser.get("/tokens").text
    assert "shop" in browser.get("/tokens?all=true").text
    for wrong in ({"scope": "all"}, {}, {"scope": "read", "expires": "soon"}, {"scope": "read", "name": EVIL}):
        assert browser.post("/tokens", data=wrong).status_code == 422, wrong


def test_a_browser_that_is_signed_in_is_seen_and_signed_out(browser: TestClient, services: Services) -> None:
    cookie = sign_in_by_code(services.database, offer_code(services.database))
    page = browser.get("/tokens").text
    assert page.count(">this browser<") == 1
    mine, local = browser.get("/tokens.json").json()["sessions"]
    assert (mine["name"], local["name"]) == ("tester", "local")
    assert mine["id"] in page
    answer = browser.post("/sessions/end", data={"session": local["id"]})
    assert (answer.status_code, answer.headers["location"]) == (303, "/tokens")
    with pytest.raises(SignInError):
        identify_session(services.database, cookie)
    assert local["id"] not in browser.get("/tokens").text


def test_the_audit_tells_who_changed_what(browser: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.api.pages.access.PAGE", 2)
    for queue in ("a", "b", "c"):
        browser.post("/queue/pause", data={"queue": queue})
    page = browser.get("/audit").text
    assert page.count("queue.pause") == 2
    assert "tester (" in page
    (older,) = re.findall(r'href="([^"]+)" rel="next"', page)
    assert "queue.pause" in browser.get(older).text


def test_webhooks_that_wait_are_told_with_the_reason(browser: TestClient, services: Services) -> None:
    assert "No messages are waiting" in browser.get("/webhooks").text
    with services.database.write() as session:
        outbox = OutboxRepository(session)
        outbox.add("alias.moved", {"task": "mood"})
        outbox.address(["hooks.example.com/1"], 60.0)
        (delivery,) = outbox.due("hooks.example.com/1")
        outbox.failed(delivery, EVIL, 60.0)
    page = without_quoted_scripts(browser.get("/webhooks").text)
    assert "hooks.example.com/1" in page
    assert browser.get("/webhooks.json").json()["endpoints"][0]["failing"] == 1


def test_the_map_is_made_once_for_what_is_there(
    browser: TestClient, database: Database, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def mapped(*_: object) -> list[Mapped]:
        made.append("")
        numbers = np.random.default_rng(0).standard_normal((6, 8))
        return [Mapped(f"task{row}", 1, BASE, False, row == 2, Traits(z=z)) for row, z in enumerate(numbers)]

    monkeypatch.setattr("onboard.versions.task_map.mapped_tasks", mapped)
    page = browser.get("/map").text
    assert browser.get("/map.json").json()["tasks"][0]["task"] == "task0"
    assert "<title>" in page
    for name in ("task0", "task5"):
        assert name in page
    assert len(made) == 1
    (services.settings.resolved_home / STORED).unlink()
    assert browser.get("/map").text == page  # kept in memory too
    assert len(made) == 1


def test_a_map_that_takes_long_after_a_change_is_shown_as_it_was_and_says_so(
    browser: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag, release = ["sha256:a"], threading.Event()
    release.set()

    def mapped(*_: object) -> list[Mapped]:
        name = "before" if tag == ["sha256:a"] else "after"
        release.wait(60)
        if tag == ["sha256:c"]:
            raise StorageError("The store is away.", "Wait for it.")
        numbers = np.random.default_rng(0).standard_normal((6, 8))
        return [Mapped(f"{name}{row}", 1, BASE, False, False, Traits(z=z)) for row, z in enumerate(numbers)]

    monkeypatch.setattr("onboard.versions.task_map.mapped_tasks", mapped)
    monkeypatch.setattr("onboard.api.pages.task_map.map_tag", lambda _: tag[0])
    monkeypatch.setattr("onboard.versions.task_map._read_stored", lambda *_: None)
    assert "before0" in browser.get("/map").text
    release.clear()
    tag[0] = "sha256:b"
    monkeypatch.setattr("onboard.api.pages.task_map._PATIENCE_SECONDS", 0.05)
    page = browser.get("/map").text
    assert "before0" in page
    assert "A new map is being made" in page
    release.set()
    monkeypatch.setattr("onboard.api.pages.task_map._PATIENCE_SECONDS", 60)
    page = browser.get("/map").text
    assert "after0" in page
    assert "A new map is being made" not in page
    tag[0] = "sha256:c"
    assert browser.get("/map.json").status_code == 503


def test_who_may_only_read_makes_no_tokens_and_reverts_nothing(reader: TestClient, database: Database) -> None:
    for place in ("/tokens", "/audit", "/webhooks"):
        assert reader.get(place).status_code == 403
    assert reader.post("/tokens", data={"scope": "admin"}).status_code == 403
    assert reader.post("/hypernetworks/1/revert", data={"base": BASE}).status_code == 403
    assert "/revert" not in reader.get("/hypernetworks/1").text


def test_what_users_wrote_is_text_on_the_other_pages(page_app: FastAPI, services: Services) -> None:
    create_token(services.database, "plain", [scope.value for scope in ALL_SCOPES])
    with signed_in(page_app, services.database, *ALL_SCOPES) as client:
        without_quoted_scripts(client.post("/tokens", data={"scope": EVIL}).text)
        without_quoted_scripts(client.post("/tokens/revoke", data={"token": EVIL}).text)
        without_quoted_scripts(client.get("/audit", params={"before": EVIL}).text + "&lt;script&gt;alert")
