"""What tells open pages that something happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from support.registry_samples import add_job
from support.watched_jobs import running, worker

from onboard.api.following import Readers
from onboard.api.pages import live
from onboard.api.pages.live import Pulse
from onboard.errors import UnavailableError
from onboard.jobs.control import set_paused
from onboard.jobs.status import pulse
from onboard.registry.database import Database
from onboard.services import Services


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
        texts = live._beats(Pulse(), services.database, readers)
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
        async for _ in live._beats(Pulse(), Database("sqlite://"), readers):
            news += 1
            if news == 3:
                readers.end()
        return news

    assert asyncio.run(followed()) == 3


def test_many_pages_ask_the_database_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Database] = []
    monkeypatch.setattr(live, "pulse", lambda database: asked.append(database) or "beat")

    async def read() -> list[str]:
        heart, database = Pulse(), Database("sqlite://")
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
