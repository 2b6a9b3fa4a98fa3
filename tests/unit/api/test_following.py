"""A job's events as a stream: nothing twice, nothing lost, a sign of life, an end, and a place that is given back."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.real_door import answering
from support.real_services import wait_until

from onboard.api import following
from onboard.api.following import Readers
from onboard.domain.access import Scope
from onboard.domain.job import JobSpec
from onboard.errors import UnavailableError
from onboard.operations.access import create_token
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(following, "AWAY_SECONDS", 0.01)


def a_job(database: Database) -> str:
    with database.write() as session:
        job, _ = JobRepository(session).add(JobSpec(task="weather", dataset="sha256:" + "0" * 64))
    return job.id


def note(database: Database, job: str, message: str) -> None:
    with database.write() as session:
        EventRepository(session).append(job, 0, "note", message)


def cancel(database: Database, job: str) -> None:
    with database.write() as session:
        JobRepository(session).cancel(job)


async def next_of(stream: AsyncIterator[str]) -> dict[str, str]:
    """The next event; comments are passed over."""
    async for text in stream:
        if not text.startswith(":"):
            return dict(line.split(": ", 1) for line in text.strip().splitlines())
    raise AssertionError("the stream ended")


def test_an_event_is_one_line_to_every_reader(database: Database) -> None:
    job, message = a_job(database), "a\u2028b\u2029c\x85d\x1ce\nf"
    note(database, job, message)
    cancel(database, job)

    async def read() -> list[str]:
        return [line async for text in Readers().follow(database, job, 0) for line in text.splitlines() if line]

    lines = asyncio.run(read())
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert message in [event.get("message") for event in events]
    assert [line for line in lines if not line.startswith(("id: ", "event: ", "data: "))] == []


def test_events_come_as_they_happen_and_the_stream_ends_with_the_job(database: Database) -> None:
    job = a_job(database)

    async def read() -> list[dict[str, str]]:
        stream = Readers().follow(database, job, 0)
        events = [await next_of(stream)]
        for message in ("one", "two"):
            note(database, job, message)
            events.append(await next_of(stream))
        cancel(database, job)
        events += [await next_of(stream), await next_of(stream)]
        assert [text async for text in stream] == []
        return events

    events = asyncio.run(read())
    assert [event["event"] for event in events] == ["state", "note", "note", "state", "end"]
    assert [json.loads(event["data"])["message"] for event in events[1:3]] == ["one", "two"]
    numbers = [int(event["id"]) for event in events[:-1]]
    assert numbers == sorted(set(numbers))
    assert "id" not in events[-1]
    assert json.loads(events[-1]["data"])["state"] == "cancelled"


def test_a_reader_comes_back_to_what_it_has_not_seen(database: Database) -> None:
    job = a_job(database)
    for number in range(5):
        note(database, job, str(number))

    async def read(since: int, count: int) -> list[dict[str, str]]:
        stream = Readers().follow(database, job, since)
        return [await next_of(stream) for _ in range(count)]

    first = asyncio.run(read(0, 3))
    rest = asyncio.run(read(int(first[-1]["id"]), 3))
    assert [json.loads(event["data"])["message"] for event in first + rest] == ["queued", *"01234"]


def test_more_events_than_a_page_come_all_of_them_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PAGE", 2)
    job = a_job(database)
    for number in range(6):
        note(database, job, str(number))
    cancel(database, job)

    async def read() -> list[str]:
        return [text async for text in Readers().follow(database, job, 0)]

    texts = asyncio.run(read())
    assert len(texts) == len(set(texts)) == 1 + 6 + 1 + 1
    assert texts[-1].startswith("event: end")


def test_while_nothing_happens_a_comment_keeps_the_connection(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "COMMENT_SECONDS", 0.0)
    job = a_job(database)

    async def read() -> list[str]:
        stream = Readers().follow(database, job, 0)
        return [await anext(stream) for _ in range(3)]

    texts = asyncio.run(read())
    assert texts[0].startswith("id: ")
    assert texts[1:] == [": still there\n\n"] * 2


def test_a_database_that_is_away_for_a_while_ends_no_stream(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, really = a_job(database), following.news_of
    away = iter([False, True, True, False])

    def news_of(*args: Any) -> Any:
        if next(away, False):
            raise UnavailableError("The database is away.")
        return really(*args)

    monkeypatch.setattr(following, "news_of", news_of)

    async def read() -> list[str]:
        stream = Readers().follow(database, job, 0)
        texts = [await anext(stream) for _ in range(3)]
        cancel(database, job)
        return texts + [text async for text in stream]

    texts = asyncio.run(read())
    assert texts[1:3] == [": the database is away\n\n"] * 2
    kinds = [text.split("event: ")[1].split("\n")[0] for text in (texts[0], *texts[3:])]
    assert kinds == ["state", "state", "end"]


def test_who_finds_no_room_is_asked_to_come_again(door: TestClient, app: FastAPI, tiny_services: Services) -> None:
    job = a_job(tiny_services.database)
    app.state.readers = Readers(most=0)
    answer = door.get(f"/v1/jobs/{job}/events")
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert int(answer.headers["retry-after"]) > 0


@pytest.mark.parametrize("number", ["-1", "x", "9" * 30, "1.5", ""])
def test_what_is_no_number_of_an_event_is_refused(door: TestClient, tiny_services: Services, number: str) -> None:
    job = a_job(tiny_services.database)
    answer = door.get(f"/v1/jobs/{job}/events", headers={"Last-Event-ID": number})
    assert (answer.status_code, answer.json()["field"]) == (422, "last-event-id")


def test_a_reader_that_leaves_gives_his_place_back(app: FastAPI, tiny_services: Services) -> None:
    job = a_job(tiny_services.database)
    secret = create_token(tiny_services.database, "raw", [Scope.READ])[1]
    with answering(app) as port:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            head = f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n"
            connection.sendall(head.encode())
            said = b""
            while b"event: state" not in said:
                said += connection.recv(4096)
            assert b"text/event-stream" in said
            assert b"no-store" in said.lower()
            assert app.state.readers.present == 1
        wait_until(lambda: app.state.readers.present == 0, 30)
