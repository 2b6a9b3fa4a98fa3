"""Places that many callers share: one token gets half of them, counted from the moment that it takes one."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from fastapi import FastAPI
from support.real_door import answer_of, answering, head_of
from support.real_services import wait_until
from support.refusals import refused as error_of
from support.registry_samples import add_job

from onboard.api import prediction_queue
from onboard.api.following import Readers
from onboard.api.places import RequestPlaces
from onboard.api.prediction_queue import PredictionQueue
from onboard.api.upload_places import UploadPlaces
from onboard.domain.access import Scope, acting
from onboard.errors import UnavailableError
from onboard.operations.access import create_token
from onboard.registry.services import Services

_FORM = b'--x\r\nContent-Disposition: form-data; name="dataset"; filename="a.jsonl"\r\n\r\n'


@pytest.fixture
def secrets(tiny_services: Services) -> list[str]:
    """Two tokens of one name: a share belongs to a token."""
    return [create_token(tiny_services.database, "twin", [Scope.READ, Scope.SUBMIT])[1] for _ in range(2)]


def take(places: RequestPlaces | UploadPlaces, who: str, stack: ExitStack) -> None:
    with acting(who):
        stack.enter_context(places.place())


@pytest.mark.parametrize("make", [lambda: RequestPlaces(4, "It is full."), lambda: UploadPlaces(4)])
def test_one_caller_gets_half_and_another_still_finds_a_place(make: Callable[[], RequestPlaces | UploadPlaces]) -> None:
    async def shared() -> None:  # uploads need the thread of an event loop
        _share(make())

    asyncio.run(shared())


def _share(places: RequestPlaces | UploadPlaces) -> None:
    with ExitStack() as held, ExitStack() as more:
        for _ in range(2):
            take(places, "a", held)
        with error_of("too-many-requests-of-token") as refused:
            take(places, "a", more)
        assert refused.value.data["retry_after_seconds"] == 10
        take(places, "b", held)
        take(places, "b", held)
        with pytest.raises(UnavailableError) as full:
            take(places, "c", more)
        assert type(full.value) is UnavailableError
    with ExitStack() as held:  # all are free again
        for who in "aabb":
            take(places, who, held)


def test_a_single_place_is_for_anybody() -> None:
    with ExitStack() as held:
        take(RequestPlaces(1, "It is full."), "a", held)


def test_texts_of_one_token_do_not_fill_the_queue(tiny_services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_queue, "MOST_WAITING_CHARACTERS", 10)
    queue = PredictionQueue(tiny_services)
    from onboard.contract.requests import parse_requests

    def room(who: str, letters: int, stack: ExitStack) -> None:
        with acting(who):
            stack.enter_context(queue._room(parse_requests([{"task": "mood", "text": "x" * letters}])))

    with ExitStack() as held, ExitStack() as more:
        room("a", 3, held)
        with error_of("too-many-texts-of-token"):
            room("a", 3, more)
        room("b", 5, held)
        with error_of("too-many-texts-waiting"):
            room("c", 3, more)
    with ExitStack() as held:
        room("a", 9, held)  # alone it may be as long as it likes


def test_streams_of_one_token_leave_half_to_others_however_fast_they_come(
    app: FastAPI, tiny_services: Services, secrets: list[str]
) -> None:
    job = add_job(tiny_services.database).id
    with answering(app) as port, ExitStack() as stack:
        app.state.readers = Readers(most=6)

        def follow(secret: str) -> None:
            head = f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n"
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            connection.sendall(head.encode())
            opened.append(connection)

        opened: list[socket.socket] = []
        for secret in (*secrets[:1] * 8, *secrets[1:] * 2):
            follow(secret)
        said = [connection.recv(12).split()[1] for connection in opened]
        assert sorted(said[:8]) == [b"200"] * 3 + [b"429"] * 5  # all at once: none slips through
        assert said[8:] == [b"200"] * 2
        assert app.state.readers.present == 5
    wait_until(lambda: app.state.readers.present == 0, 30)


def test_uploads_of_one_token_leave_half_to_others(app: FastAPI, secrets: list[str]) -> None:
    with answering(app) as port, ExitStack() as stack:

        def sending(secret: str) -> socket.socket:
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), 60))
            connection.sendall(head_of("/v1/check", secret, "Content-Length: 1000000") + _FORM + b"some ro")
            return connection

        for _ in range(4):
            sending(secrets[0])
        wait_until(lambda: len(list(app.state.uploads.iterdir())) == 4, 30)
        status, problem = answer_of(sending(secrets[0]))
        assert (status, problem["code"], problem["retry_after_seconds"]) == (429, "rate_limit", 10)
        sending(secrets[1])
        wait_until(lambda: len(list(app.state.uploads.iterdir())) == 5, 30)
