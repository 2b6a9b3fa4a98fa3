"""Moving an alias while the service fails: as many attempts as the client was given, each of them sent once."""

from __future__ import annotations

import asyncio
import inspect
import json
from typing import Any

import httpx
import pytest
from fake_service import Answer, FakeService, answer, problem, status
from support.refusals import refused as error_of

from onboard.client import AsyncOnboard, Onboard
from onboard.contract.versions import AliasMoveDocument
from onboard.errors import UnavailableError

PATH = "/v1/tasks/paws/aliases/production"
BEFORE = {
    "task": "paws", "alias": "production", "version": 1, "previous": None, "at": "2026-01-01T00:00:00Z", "actor": "me",
    "reason": "promoted",
}  # fmt: skip
MOVED = {**BEFORE, "version": 2, "previous": 1, "at": "2026-01-02T00:00:00Z"}


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def client(service: FakeService, pauses: list[float], request: pytest.FixtureRequest) -> Onboard:
    service.routes["GET", PATH] = answer({"history": [BEFORE]})
    service.routes["GET", "/v1/me"] = answer({"actor": "me"})
    transport = httpx.MockTransport(service)
    return Onboard("https://service.test", attempts=request.param, transport=transport, sleep=pauses.append)


def refused(_request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


def cut(_request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("cut off")


def limited(_request: httpx.Request) -> httpx.Response:
    return problem(429, "rate_limit", "Too many.", retry_after_seconds=3)


@pytest.mark.parametrize("trouble", [refused, cut, status(503), status(429)], ids=["refused", "cut", "503", "429"])
@pytest.mark.parametrize(("client", "attempts"), [(1, 1), (3, 3)], indirect=["client"])
def test_a_move_is_sent_as_often_as_the_client_was_told_with_a_pause_between_two(
    service: FakeService, client: Onboard, pauses: list[float], attempts: int, trouble: Answer
) -> None:
    service.routes["PUT", PATH] = trouble
    with pytest.raises(UnavailableError):
        client.promote("paws@v2", "production")
    assert service.asked("PUT") == [PATH] * attempts
    assert len(pauses) == attempts - 1


@pytest.mark.parametrize("client", [2], indirect=True)
def test_the_pause_that_the_service_asks_for_is_kept_before_a_move_is_sent_again(
    service: FakeService, client: Onboard, pauses: list[float]
) -> None:
    answers: list[Answer] = [limited, answer(MOVED)]
    service.routes["PUT", PATH] = lambda request: answers.pop(0)(request)
    assert client.promote("paws@v2", "production").version == 2
    assert pauses == [3.0]


@pytest.mark.parametrize("client", [1], indirect=True)
@pytest.mark.parametrize("actor", ["me", "somebody"])
def test_a_move_whose_answer_was_lost_is_found_in_the_history_after_the_last_attempt(
    service: FakeService, client: Onboard, pauses: list[float], actor: str
) -> None:
    def moved(request: httpx.Request) -> httpx.Response:
        history: list[dict[str, Any]] = [{**MOVED, "actor": actor}, BEFORE]
        service.routes["GET", PATH] = answer({"history": history})
        return cut(request)

    service.routes["PUT", PATH] = moved
    if actor == "me":
        assert client.promote("paws@v2", "production").version == 2
    else:
        with error_of("alias-moved-meanwhile"):
            client.promote("paws@v2", "production")
    assert (service.asked("PUT"), pauses) == ([PATH], [])


@pytest.mark.parametrize("kind", [Onboard, AsyncOnboard])
def test_a_canary_is_ordered_by_its_share(service: FakeService, kind: type[Onboard | AsyncOnboard]) -> None:
    service.routes["GET", PATH] = answer({"history": [BEFORE]})
    service.routes["PUT", PATH] = answer({**BEFORE, "canary": 2, "share": 0.1})
    client = kind("https://service.test", transport=httpx.MockTransport(service))

    async def promoted() -> AliasMoveDocument:
        moved = client.promote("paws@v2", "production", share=0.1)
        return await moved if inspect.isawaitable(moved) else moved

    move = asyncio.run(promoted())
    assert (move.version, move.canary, move.share) == (1, 2, 0.1)
    (order,) = [request for request in service.requests if request.method == "PUT"]
    assert json.loads(order.content) == {"version": 2, "if_better": False, "share": 0.1}
