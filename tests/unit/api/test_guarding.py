"""The guard in front of every route: hosts, other sites, headers, how often, how much."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from starlette.datastructures import Headers
from support.callers import bearer

from onboard.api.app import create_app
from onboard.api.guarding import (
    BODY_BYTES,
    FAILURES_PER_MINUTE,
    HEAD_BYTES,
    OPEN_BODY_BYTES,
    allowed_hosts,
    body_limit,
    caller_address,
    require_host,
    require_same_site,
    require_small,
    session_cookie,
)
from onboard.api.limits import RateLimit
from onboard.domain.access import Scope
from onboard.errors import HostError, InputError, NotAllowedError, TooLargeError
from onboard.operations import access
from onboard.registry.database import Database
from onboard.services import Services
from onboard.settings import Settings

HERE = {"Origin": "http://localhost"}
JOBS, PAUSE = "/v1/jobs", "/v1/queue/pause"


def opened(services: Services, **changes: Any) -> TestClient:
    settings = services.settings.model_copy(update={"start_worker": False, **changes})
    return TestClient(
        create_app(settings), "http://localhost", follow_redirects=False, raise_server_exceptions=False,
    )  # fmt: skip


@pytest.fixture
def client(tiny_services: Services) -> Iterator[TestClient]:
    with opened(tiny_services) as client:
        yield client


@pytest.fixture
def token(tiny_services: Services) -> dict[str, str]:
    return bearer(tiny_services.database, *Scope)


HOSTS = frozenset({"localhost", "onboard.example"})


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "onboard.example:443", "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", "10.1.2.3:80"],
)
def test_our_names_and_plain_addresses_are_ours(host: str) -> None:
    require_host(Headers({"host": host}), HOSTS)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:8000", "a@localhost", "",
        "localhost/x", "localhost?x", "localhost#x", "localhost:8000:1", "localhost:port", "[::1", "onboard.example.",
        "127.1", "2130706433", "0x7f.1", "xn--localhost-", "localhost,evil.example", "evil.example\\@localhost",
    ],
)  # fmt: skip
def test_any_other_host_is_refused(host: str) -> None:
    with pytest.raises(HostError):
        require_host(Headers({"host": host}), HOSTS)


def test_a_request_names_one_host() -> None:
    for raw in ([], [(b"host", b"localhost"), (b"host", b"localhost")]):
        with pytest.raises(HostError):
            require_host(Headers(raw=raw), HOSTS)


def test_another_host_is_refused_before_all_else_and_on_open_paths_too(
    client: TestClient, token: dict[str, str]
) -> None:
    for path in ("/healthz", "/login", "/", JOBS):
        answer = client.get(path, headers=token | {"Host": "evil.example"})
        assert (answer.status_code, answer.json()["code"]) == (421, "host")
        assert "ONBOARD_ALLOWED_HOSTS" in answer.json()["remedy"]


def test_names_of_ours_are_added_by_a_setting(tiny_services: Services) -> None:
    assert {"localhost", "onboard.example", "api"} <= allowed_hosts(Settings(allowed_hosts=" Onboard.Example api "))
    with opened(tiny_services, allowed_hosts="api") as client:
        assert client.get("/healthz", headers={"Host": "api:8000"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"origin": "http://localhost:8000"},
        {"origin": "HTTP://LOCALHOST:8000"},
    ],
)
def test_what_this_site_asks_for_is_done(headers: dict[str, str]) -> None:
    require_same_site(Headers({"host": "localhost:8000", **headers}))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},  # another port of this machine, another name of this domain
        {"sec-fetch-site": "cross-site", "origin": "http://localhost:8000"},
        {"origin": "null"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:8001"},
        {"origin": "http://localhost:8000.evil.example"},
        {"origin": "http://evil.example/localhost:8000"},
        {"origin": ""},
        {"referer": "http://localhost:8000/"},
    ],
)
def test_what_another_site_asks_for_is_not_done(headers: dict[str, str]) -> None:
    with pytest.raises(NotAllowedError, match="Another site"):
        require_same_site(Headers({"host": "localhost:8000", **headers}))


def test_a_cookie_changes_nothing_on_behalf_of_another_site(client: TestClient, tiny_services: Services) -> None:
    client.get("/login", params={"code": access.offer_code(tiny_services.database)})
    for elsewhere in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        for method, path in (("POST", PAUSE), ("DELETE", "/v1/tasks/sst2"), ("PUT", "/v1/tasks/sst2/aliases/a")):
            assert client.request(method, path, json={}, headers=elsewhere).status_code == 403
        assert client.post("/logout", headers=elsewhere).status_code == 403
    assert client.post(PAUSE, json={}, headers=HERE).status_code == 200


def test_another_site_signs_nobody_in(client: TestClient, tiny_services: Services) -> None:
    form = {"token": access.create_token(tiny_services.database, "theirs", ["read"])[1]}
    for elsewhere in ({}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "same-site"}):
        assert client.post("/login", data=form, headers=elsewhere).status_code == 403
    assert client.post("/login", data=form, headers=HERE).status_code == 303


def test_a_bearer_token_needs_no_origin_as_no_browser_sends_it_by_itself(
    client: TestClient, token: dict[str, str]
) -> None:
    assert client.post(PAUSE, json={}, headers=token).status_code == 200


def test_a_bearer_token_beside_a_cookie_is_what_counts(client: TestClient, tiny_services: Services) -> None:
    client.get("/login", params={"code": access.offer_code(tiny_services.database)})
    assert client.get("/v1/tokens").status_code == 200
    assert client.get("/v1/tokens", headers=bearer(tiny_services.database, "read")).status_code == 403
    assert client.get("/v1/tokens", headers={"Authorization": "Bearer wrong"}).status_code == 401


@pytest.mark.parametrize("cookie", ["", ";;;", "onboard_session", "a=b; =c", "onboard_session=", 'x="', "\x00=1"])
def test_an_odd_cookie_is_none(cookie: str) -> None:
    assert not session_cookie(Headers({"cookie": cookie}))


@pytest.mark.parametrize("foreign", ['a="', "theme={dark}", "a b=c", "ä=1", "x[y]=1", "expires=Mon, 1 Jan"])
def test_a_cookie_of_somebody_else_does_not_hide_ours(foreign: str) -> None:
    for cookie in (f"{foreign}; onboard_session=x-Y_1", f"onboard_session=x-Y_1; {foreign}"):
        assert session_cookie(Headers({"cookie": cookie})) == "x-Y_1"


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


def test_a_database_that_is_away_is_not_described_to_strangers(
    client: TestClient, tiny_services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    file = tiny_services.settings.resolved_home / "onboard.db"
    app: Any = client.app
    away = {
        "127.0.0.1": "postgresql://me:hunter2@127.0.0.1:9/inside",
        "no-folder": f"sqlite:///{file}/no-folder/onboard.db",
    }
    for named, url in away.items():
        app.state.services = replace(tiny_services, database=Database(url))
        caplog.clear()
        for path, headers in (("/readyz", {}), ("/v1/me", {"Authorization": "Bearer made-up"})):
            answer = client.get(path, headers=headers)
            problem = answer.json()
            assert (answer.status_code, problem["code"], answer.headers["retry-after"]) == (503, "unavailable", "2")
            assert problem["detail"] == "The database cannot be reached."
            assert problem.keys() == {"type", "title", "status", "detail", "code", "remedy"}
            assert not any(word in answer.text for word in ("127.0.0.1", "inside", "me:", "onboard.db", "sqlite"))
        assert named in caplog.text
        assert len([message for message in caplog.messages if named in message]) == 2
    app.state.services = tiny_services


def answers(client: TestClient, token: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Any]]:
    """One of each kind: pages, documents, problems of every layer."""
    yield "page", client.get("/docs", headers=token)
    yield "form", client.get("/")
    yield "document", client.get(JOBS, headers=token)
    yield "open", client.get("/healthz")
    yield "401", client.get(JOBS)
    yield "404", client.get("/v1/nothing", headers=token)
    yield "405", client.put(JOBS, headers=token)
    yield "413", client.post("/login", content=b"x" * (OPEN_BODY_BYTES + 1), headers=HERE)
    yield "421", client.get(JOBS, headers={"Host": "evil.example"})
    yield "422", client.post("/v1/tokens", json={}, headers=token)
    monkeypatch.setattr("onboard.api.routes.queue.queues", None)
    yield "500", client.get("/v1/queue", headers=token)


def test_every_answer_has_the_headers_that_protect_a_browser(
    client: TestClient, token: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for what, answer in answers(client, token, monkeypatch):
        if what.isdigit():
            assert answer.status_code == int(what)
        headers = answer.headers
        assert headers["x-content-type-options"] == "nosniff", what
        assert headers["referrer-policy"] == "no-referrer", what
        assert headers["cache-control"] == "no-store", what
        policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
        assert (policy["default-src"], policy["frame-ancestors"], policy["base-uri"]) == ("'none'",) * 3, what
        assert policy["script-src"] == "'self'"
        assert "http" not in headers["content-security-policy"]  # nothing comes from elsewhere
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers


def test_what_may_be_kept_is_kept_by_the_caller_alone(client: TestClient, token: dict[str, str]) -> None:
    caching = client.get("/v1/tasks/sst2/embeddings/v1", headers=token).headers
    assert "private" in caching["cache-control"]
    assert "Authorization" in caching["vary"]


def test_pages_load_nothing_at_all(client: TestClient, token: dict[str, str]) -> None:
    for page in (client.get("/docs", headers=token).text, client.get("/login").text):
        for word in ("<script", "<link", "<img", "<iframe", "src=", "@import", "url(", "//cdn"):
            assert word not in page


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
    wrong, good = {"Authorization": "Bearer wrong"}, access.create_token(tiny_services.database, "good", ["read"])[1]
    code = access.offer_code(tiny_services.database)
    statuses = [client.get(JOBS, headers=wrong).status_code for _ in range(FAILURES_PER_MINUTE)]
    assert set(statuses) == {401}

    def exhausted() -> bool:
        """Meanwhile one a second was forgiven, so on a slow machine the next may still be let through."""
        return any(client.get(JOBS, headers=wrong).status_code == 429 for _ in range(FAILURES_PER_MINUTE))

    assert exhausted()
    assert client.get(JOBS, headers={"Authorization": f"Bearer {good}"}).status_code == 200
    # a person at the form has to wait
    assert exhausted()
    assert client.post("/login", data={"token": good}, headers=HERE).status_code == 429
    assert exhausted()
    assert client.get("/login", params={"code": code}).status_code == 429


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
        with pytest.raises(InputError, match="ONBOARD_TRUSTED_PROXIES"):
            Settings(trusted_proxies=wrong)
