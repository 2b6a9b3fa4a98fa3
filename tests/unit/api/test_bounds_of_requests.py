"""The guard in front of every route: how much a request may hold, how often a caller may ask, who waits for whom."""

from __future__ import annotations

import threading
from functools import partial

import anyio
import anyio.to_thread
import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.datastructures import Headers
from support.callers import bearer
from support.guarded_door import HERE, JOBS, PAUSE, opened
from support.refusals import refused

from onboard.api.app import create_app
from onboard.api.guarding import (
    BODY_BYTES,
    FAILURES_PER_MINUTE,
    HEAD_BYTES,
    OPEN_BODY_BYTES,
    body_limit,
    caller_address,
    require_small,
)
from onboard.api.limits import RateLimit
from onboard.errors import TooLargeError
from onboard.operations import access
from onboard.registry.services import Services
from onboard.settings import Settings


def client_on_a_loop(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


def test_the_service_says_that_it_lives_while_everything_waits(tiny_services: Services) -> None:
    app = create_app(tiny_services.settings)

    async def ask() -> int:
        threads = anyio.to_thread.current_default_thread_limiter()
        for _ in range(int(threads.total_tokens)):
            threads.acquire_on_behalf_of_nowait(object())
        async with client_on_a_loop(app) as client:
            with anyio.fail_after(10):
                return (await client.get("/healthz")).status_code

    assert anyio.run(ask) == 200


def test_one_request_of_a_token_at_a_time_waits_to_note_its_use(
    tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(tiny_services.settings)
    token, noted = bearer(tiny_services.database, "read"), []
    begun, noting = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        noted.append(1)
        begun.set()
        noting.wait(30)

    monkeypatch.setattr("onboard.api.guarding.note_use", wait)

    async def ask() -> None:
        app.state.services = tiny_services
        async with client_on_a_loop(app) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(partial(client.get, "/v1/me", headers=token))
                with anyio.fail_after(10):
                    assert await anyio.to_thread.run_sync(begun.wait, 10)
                    await client.get("/v1/me", headers=token)
                noting.set()
            assert len(noted) == 1
            await client.get("/v1/me", headers=token)

    anyio.run(ask)
    assert len(noted) == 2


def test_a_body_is_bounded_with_and_without_a_length(client: TestClient, token: dict[str, str]) -> None:
    headers = token | {"Content-Type": "application/json"}
    long = b" " * (BODY_BYTES + 1)
    for path in ("/v1/predict", "/v1/tokens", PAUSE, "/v1/jobs/a/retry"):
        for body in (long, iter([long])):
            refused = client.post(path, content=body, headers=headers)
            assert (refused.status_code, refused.json()["code"]) == (413, "too_large"), path


def test_who_has_not_signed_in_may_send_little(client: TestClient) -> None:
    headers = HERE | {"Content-Type": "application/x-www-form-urlencoded"}
    long = b"token=" + b"x" * OPEN_BODY_BYTES
    for body in (long, iter([long])):
        assert client.post("/login", content=body, headers=headers).status_code == 413


def test_every_path_has_a_limit_for_its_body() -> None:
    assert [body_limit(path) for path in ("/login", "/healthz", "/static/x", PAUSE, "/v1/nothing")] == [
        OPEN_BODY_BYTES, OPEN_BODY_BYTES, OPEN_BODY_BYTES, BODY_BYTES, BODY_BYTES,
    ]  # fmt: skip
    assert body_limit(JOBS) > BODY_BYTES


def test_a_length_is_compared_as_a_number() -> None:
    require_small(Headers({"content-length": "10"}), 10)
    for length in ("11", "00000000011", "9" * 30):
        with pytest.raises(TooLargeError):
            require_small(Headers({"content-length": length}), 10)


def test_an_address_and_headers_are_bounded(client: TestClient, token: dict[str, str]) -> None:
    long = "x" * HEAD_BYTES
    for answer in (
        client.get(f"/v1/tasks/{long}", headers=token),
        client.get(JOBS, params={"cursor": long}, headers=token),
        client.get(JOBS, headers=token | {"X-Long": long}),
        client.get(JOBS, headers=token | {f"X-{number}": "x" * 100 for number in range(200)}),
        client.get("/healthz", headers={"X-Long": long}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (431, "too_large")


def test_too_many_requests_of_a_token_are_told_when_to_come_again_and_another_token_is_not(
    tiny_services: Services,
) -> None:
    with opened(tiny_services, requests_per_minute=3) as client:
        one, other = bearer(tiny_services.database, "read"), bearer(tiny_services.database, "read")
        answers = [client.get(JOBS, headers=one) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 20
        assert answers[-1].json()["code"] == "rate_limit"
        assert client.get(JOBS, headers=other).status_code == 200


def test_who_has_not_signed_in_is_limited_by_address_but_the_health_check_is_not(tiny_services: Services) -> None:
    with opened(tiny_services, requests_per_minute=3) as client:
        assert [client.get(path).status_code for path in ("/login", "/readyz", JOBS, "/login", JOBS)] == [
            200, 200, 401, 429, 429,
        ]  # fmt: skip
        assert client.get("/healthz").status_code == 200
        assert client.get(JOBS, headers=bearer(tiny_services.database, "read")).status_code == 200


def test_wrong_tokens_are_slowed_down_and_a_good_one_from_there_is_not(
    client: TestClient, tiny_services: Services
) -> None:
    app = client.app
    assert isinstance(app, FastAPI)
    app.state.failures = RateLimit(FAILURES_PER_MINUTE, clock=lambda: 0.0)  # nothing is forgiven meanwhile
    wrong = {"Authorization": "Bearer wrong"}
    statuses = [client.get(JOBS, headers=wrong).status_code for _ in range(FAILURES_PER_MINUTE)]
    assert set(statuses) == {401}
    assert client.get(JOBS, headers=wrong).status_code == 429
    good = access.create_token(tiny_services.database, "good", ["read"])[1]
    assert client.get(JOBS, headers={"Authorization": f"Bearer {good}"}).status_code == 200
    # a person at the form has to wait
    assert client.post("/login", data={"token": good}, headers=HERE).status_code == 429
    assert client.get("/login", params={"code": access.offer_code(tiny_services.database)}).status_code == 429


def test_wrong_codes_and_wrong_tokens_of_the_form_count_too(client: TestClient) -> None:
    app = client.app
    assert isinstance(app, FastAPI)
    app.state.failures = RateLimit(2)
    assert client.get("/login", params={"code": "wrong"}).status_code == 401
    assert client.post("/login", data={"token": "wrong"}, headers=HERE).status_code == 401
    assert client.get("/login", params={"code": "wrong"}).status_code == 429


def test_of_ipv6_the_network_of_a_customer_is_one_caller() -> None:
    def address(text: str) -> str:
        return caller_address({"client": (text, 1)})

    assert address("2001:db8:1:2:aaaa::1") == address("2001:db8:1:2::ffff") != address("2001:db8:1:3::1")
    assert address("fe80::1%eth0") == "fe80::/64"
    assert (address("10.0.0.1"), address("odd:name"), caller_address({})) == ("10.0.0.1", "odd:name", "local")


def test_proxies_are_named_by_their_addresses() -> None:
    assert Settings(trusted_proxies="10.0.0.7 10.1.0.0/16 ::1").trusted_proxies.split()[1] == "10.1.0.0/16"
    for wrong in ("*", "proxy", "10.0.0.0/8,10.0.0.1", "10.0.0.1/8"):
        with refused("setting-not-address"):
            Settings(trusted_proxies=wrong)
