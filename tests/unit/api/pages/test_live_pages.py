"""What tells open pages that something happened."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.browsing import signed_in
from support.registry_samples import add_job
from support.watched_jobs import running, worker

from onboard.api import following
from onboard.api.following import COMMENT_SECONDS, Readers, while_signed_in
from onboard.api.pages import live, overview
from onboard.api.pages.live import ServicePulse
from onboard.domain.access import ALL_SCOPES, Scope
from onboard.errors import SignInError, UnavailableError
from onboard.jobs.control import set_paused
from onboard.jobs.status import pulse
from onboard.registry.database import Database
from onboard.registry.services import Services


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.01)


async def first(texts: AsyncIterator[str], count: int) -> list[str]:
    return [await anext(texts) for _ in range(count)]


def test_the_pulse_differs_once_something_happened_and_only_then(services: Services) -> None:
    database = services.database
    beats = [pulse(database), pulse(database)]
    assert beats[0] == beats[1]
    add_job(database)
    beats.append(pulse(database))
    worker(database, "w1")
    beats.append(pulse(database))
    running(database, "w1", queue="other")
    beats.append(pulse(database))
    set_paused(database, "default", True)
    beats.append(pulse(database))
    assert len(set(beats)) == len(beats) - 1


@pytest.mark.usefixtures("quick")
def test_news_come_at_once_and_when_something_happened(services: Services) -> None:
    async def followed() -> list[str]:
        readers = Readers()
        texts = live._beats(ServicePulse(), services.database, readers)
        begun = await first(texts, 1)
        waiting = asyncio.ensure_future(anext(texts))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        add_job(services.database)
        happened = await asyncio.wait_for(waiting, 60)
        readers.end()
        return [*begun, happened, *[text async for text in texts]]

    assert asyncio.run(followed()) == ["event: news\ndata:\n\n"] * 2


@pytest.mark.usefixtures("quick")
def test_a_database_that_was_away_is_news_once(monkeypatch: pytest.MonkeyPatch) -> None:
    beats: list[Any] = ["a", UnavailableError("away"), UnavailableError("away"), "a"]

    def beat(_: Database) -> str:
        answer = beats.pop(0) if beats else "a"
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    monkeypatch.setattr(live, "pulse", beat)

    async def followed() -> int:
        readers = Readers()
        news = 0
        async for _ in live._beats(ServicePulse(), Database("sqlite://"), readers):
            news += 1
            if news == 3:
                readers.end()
        return news

    assert asyncio.run(followed()) == 3


def test_many_pages_ask_the_database_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Database] = []
    monkeypatch.setattr(live, "pulse", lambda database: asked.append(database) or "beat")

    async def read() -> list[str]:
        heart, database = ServicePulse(), Database("sqlite://")
        return await asyncio.gather(*(heart.read(database) for _ in range(50)))

    assert asyncio.run(read()) == ["beat"] * 50
    assert len(asked) == 1


def test_too_many_readers_are_asked_to_come_again(browser: TestClient) -> None:
    browser.app.state.readers = Readers(most=0)  # type: ignore[attr-defined]
    assert browser.get("/live").status_code == 503


def test_the_events_of_a_job_end_with_it(browser: TestClient, services: Services) -> None:
    job = add_job(services.database)
    browser.post(f"/v1/jobs/{job.id}/cancel")
    answer = browser.get(f"/live/{job.id}")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "event: end" in answer.text
    assert browser.get("/live/0123456789ab").status_code == 404


@pytest.mark.usefixtures("quick")
def test_a_part_is_made_once_for_all_who_may_the_same(services: Services) -> None:
    made: list[str] = []
    heart, database = ServicePulse(), services.database

    def make() -> str:
        made.append("")
        return f"part {len(made)}"

    async def followed() -> list[str]:
        await heart.read(database)
        texts = await asyncio.gather(*(heart.part("those who read", make) for _ in range(20)))
        other = await heart.part("those who may more", make)
        add_job(database)
        await asyncio.sleep(0.02)
        await heart.read(database)
        return [*sorted(set(texts)), other, await heart.part("those who read", make)]

    assert asyncio.run(followed()) == ["part 1", "part 2", "part 3"]


@pytest.mark.usefixtures("quick")
def test_a_stream_ends_once_its_token_is_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "IDENTIFY_SECONDS", 0.0)
    asked: list[Any] = [None, UnavailableError("away"), None, SignInError("It was revoked.")]

    async def identify() -> None:
        if error := asked.pop(0):
            raise error

    async def texts() -> AsyncIterator[str]:
        for number in range(9):
            await asyncio.sleep(0.001)
            yield str(number)

    async def followed() -> list[str]:
        return [text async for text in while_signed_in(texts(), identify)]

    assert asyncio.run(followed()) == ["0", ": the database is away\n\n", "1", "2"]  # and none is lost


def test_the_events_of_a_job_end_with_the_token_too(
    browser: TestClient, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def revoked(*_: object) -> None:
        raise SignInError("It was revoked.")

    monkeypatch.setattr(following, "IDENTIFY_SECONDS", -1.0)
    monkeypatch.setattr(following, "identified", revoked)
    job = add_job(services.database)
    for path in (f"/live/{job.id}", f"/v1/jobs/{job.id}/events"):
        assert browser.get(path).text == ""
    assert browser.app.state.readers.present == 0  # type: ignore[attr-defined]


def test_a_token_is_looked_at_within_half_a_minute() -> None:
    assert following.IDENTIFY_SECONDS + COMMENT_SECONDS + live.LOOK_SECONDS < 30


def test_the_part_of_the_overview_has_what_the_reader_may(page_app: FastAPI, services: Services) -> None:
    worker(services.database, "w1")
    for scopes, buttons in ((ALL_SCOPES, True), ((Scope.READ,), False)):
        with signed_in(page_app, services.database, *scopes) as client:
            page_app.state.readers = Beats(1)
            kind, data = client.get("/live?of=overview").text.splitlines()[:2]
            html = json.loads(data.removeprefix("data: "))
            assert kind == "event: part"
            assert html.lstrip().startswith('<div id="live"')
            assert ("Drain" in html) is buttons


@pytest.mark.usefixtures("quick")
def test_only_the_overview_comes_again_as_ages_grow(
    page_app: FastAPI, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "AGE_SECONDS", 0.0)
    with signed_in(page_app, services.database, Scope.READ) as client:
        for place, event, count in (("/live", "event: news", 1), ("/live?of=overview", "event: part", 3)):
            page_app.state.readers = Beats(3)
            assert client.get(place).text.count(event) == count


def test_all_parts_of_one_moment_are_of_one_reading(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Database] = []
    monkeypatch.setattr(overview, "_document", lambda database, lately: read.append(database) or {"read": len(read)})
    shown, moment = overview.Overview(), time.monotonic()
    assert [shown.read(services.database, since=moment) for _ in range(3)] == [{"read": 1}] * 3
    assert shown.read(services.database, since=time.monotonic()) == {"read": 2}  # what happened since is on it
    assert shown.read(services.database) == {"read": 2}


class Beats(Readers):
    """Of a service that leaves after so many looks."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.left = count

    @property
    def ending(self) -> bool:
        self.left -= 1
        return self.left < 0
