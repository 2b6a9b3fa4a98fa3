"""`AsyncOnboard`: the operations of `Onboard`, awaited, with the same requests, retries, errors and cache."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, answer, status
from support.refusals import refused

from onboard.client import AsyncOnboard, Onboard
from onboard.client.service import ServiceOperations
from onboard.errors import JobFailedError

JOB = {"job": "0" * 12, "task": "paws", "state": "queued"}
PATH = f"/v1/jobs/{'0' * 12}"
OWN = {"close", "events"}  # written for each of the two clients


def client(service: FakeService, folder: Path, pauses: list[float] | None = None) -> AsyncOnboard:
    async def sleep(seconds: float) -> None:
        if pauses is not None:
            pauses.append(seconds)

    return AsyncOnboard(
        "https://service.test/", "secret", cache=folder, transport=httpx.MockTransport(service), sleep=sleep
    )


def public(kind: type) -> set[str]:
    return {name for name, value in inspect.getmembers(kind, inspect.isroutine) if not name.startswith("_")}


def test_both_clients_have_the_operations_of_one_table() -> None:
    assert public(Onboard) == public(AsyncOnboard) == public(ServiceOperations) | OWN
    assert {
        name for name in public(ServiceOperations) if getattr(Onboard, name) is not getattr(AsyncOnboard, name)
    } == set()


def test_what_may_be_asked_twice_is_asked_again_after_a_pause(service: FakeService, tmp_path: Path) -> None:
    pauses: list[float] = []
    service.routes["GET", PATH] = answer(JOB)
    service.troubles = [status(429, **{"Retry-After": "3"}), status(503)]

    async def asked() -> Any:
        async with client(service, tmp_path, pauses) as asking:
            return await asking.job("0" * 12)

    assert asyncio.run(asked()).state == "queued"
    assert (len(service.requests), pauses[0]) == (3, 3.0)
    assert service.requests[0].headers["authorization"] == "Bearer secret"


def test_a_refusal_is_the_error_of_the_command(service: FakeService, tmp_path: Path) -> None:
    service.away = True
    with refused("service-unreachable"):
        asyncio.run(client(service, tmp_path).cancel("0" * 12))
    assert len(service.requests) == 4


def test_a_file_is_uploaded_whole_with_each_attempt(service: FakeService, tmp_path: Path) -> None:
    data = tmp_path / "paws.jsonl"
    data.write_text('{"text": "x", "label": 1}\n' * 5000, encoding="utf-8")
    service.troubles = [status(503)]
    service.routes["POST", "/v1/jobs"] = answer(JOB, 202)
    bodies: list[bytes] = []

    async def kept(request: httpx.Request) -> httpx.Response:
        bodies.append(await request.aread())
        return service(request)

    async def asked() -> Any:
        asking = client(service, tmp_path)
        asking._connection._client._transport = httpx.MockTransport(kept)
        return await asking.submit(data, shots=32)

    assert asyncio.run(asked()).task == "paws"
    assert [body.count(b'"label": 1') for body in bodies] == [5000, 5000]


def test_many_requests_are_under_way_at_once(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", PATH] = answer(JOB)
    waiting = asyncio.Event()

    async def slow(request: httpx.Request) -> httpx.Response:
        if len(service.requests) == 2:
            waiting.set()
        await asyncio.wait_for(waiting.wait(), 20)
        return service(request)

    async def asked() -> list[Any]:
        asking = client(service, tmp_path)

        async def counted(request: httpx.Request) -> httpx.Response:
            service.requests.append(request)
            return await slow(request)

        asking._connection._client._transport = httpx.MockTransport(counted)
        return await asyncio.gather(asking.job("0" * 12), asking.job("0" * 12))

    assert [job.state for job in asyncio.run(asked())] == ["queued", "queued"]


def events(*numbers: int) -> Any:
    lines = [{"id": number, "kind": "note", "message": f"step {number}"} for number in numbers]
    text = ": alive\n\n" + "".join(f"data: {json.dumps(line)}\n\n" for line in lines)
    return lambda _: httpx.Response(200, text=text)


def test_waiting_follows_the_events_and_raises_for_a_job_that_fails(service: FakeService, tmp_path: Path) -> None:
    failed = answer({**JOB, "state": "failed", "error": {"message": "no memory"}})
    service.troubles = [events(1, 2), answer(JOB), status(503), events(3), failed, failed]
    seen: list[int] = []
    with pytest.raises(JobFailedError, match="no memory"):
        asyncio.run(client(service, tmp_path).wait("0" * 12, on_event=lambda event: seen.append(event.id)))
    assert seen == [1, 2, 3]
    service.routes["GET", PATH] = answer(JOB)
    service.routes["GET", PATH + "/events"] = events()
    with refused("job-not-ended", timeout_seconds=0):
        asyncio.run(client(service, tmp_path).wait("0" * 12, timeout_seconds=0))


def test_events_are_an_asynchronous_iterator(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", PATH + "/events"] = events(1, 2)

    async def asked() -> list[int]:
        return [event.id async for event in client(service, tmp_path).events("0" * 12)]

    assert asyncio.run(asked()) == [1, 2]


def test_the_cache_is_that_of_the_other_client(service: FakeService, tmp_path: Path) -> None:
    content = service.add("paws", 1)
    assert asyncio.run(client(service, tmp_path).embedding("paws@v1")).content == content
    assert service.client(tmp_path).embedding("paws@v1").content == content
    assert len(service.requests) == 1
    found = asyncio.run(client(service, tmp_path).embeddings())
    assert (list(found), found["paws"].content) == (["paws"], content)
