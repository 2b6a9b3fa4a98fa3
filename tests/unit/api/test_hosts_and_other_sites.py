"""The guard in front of every route: which hosts and sites it lets in, and what its answers tell whom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from starlette.datastructures import Headers
from support.callers import bearer
from support.guarded_door import HERE, JOBS, PAUSE, opened
from support.refusals import refused

from onboard.api.guarding import OPEN_BODY_BYTES, allowed_hosts, require_host, require_same_site, session_cookie
from onboard.errors import HostError, NotAllowedError
from onboard.operations import access
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.settings import Settings

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
        {"origin": "null", "referer": "http://localhost:8000/login"},  # a form under another Referrer-Policy
        {"referer": "http://localhost:8000/tasks/mood?x=http://evil.example"},  # no browser's form names an Origin
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
        {"referer": "http://localhost:8001/"},
        {"referer": "http://evil.example/http://localhost:8000/"},
        {"referer": "http://localhost:8000@evil.example/"},
        {"origin": "null", "referer": "http://evil.example/"},
        {"origin": "http://evil.example", "referer": "http://localhost:8000/"},
        {"origin": "ftp://localhost:8000"},
        {"origin": "http://localhost:port"},
        {"sec-fetch-site": "cross-site", "referer": "http://localhost:8000/"},
    ],
)
def test_what_another_site_asks_for_is_not_done(headers: dict[str, str]) -> None:
    with pytest.raises(NotAllowedError) as caught:
        require_same_site(Headers({"host": "localhost:8000", **headers}))
    assert caught.value.type in ("form-of-other-site", "form-of-other-origin")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("onboard.example", "http://onboard.example"),
        ("onboard.example:80", "http://onboard.example"),
        ("onboard.example:443", "https://onboard.example"),
        ("onboard.example", "https://onboard.example"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_a_port_that_goes_without_saying_is_the_same_site(host: str, origin: str) -> None:
    require_same_site(Headers({"host": host, "origin": origin}))


def test_a_proxy_that_drops_the_port_is_named_in_the_error() -> None:
    with refused("form-of-other-origin"):
        require_same_site(Headers({"host": "onboard.example", "origin": "http://onboard.example:8080"}))


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
        assert headers["referrer-policy"] == "same-origin", what
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


def test_pages_load_nothing_but_the_icon(client: TestClient, token: dict[str, str]) -> None:
    icon = '<link rel="icon" type="image/svg+xml" href="/static/icon.svg">'
    for page in (client.get("/login").text.replace(icon, ""),):
        for word in ("<script", "<link", "<img", "<iframe", "src=", "@import", "url(", "//cdn"):
            assert word not in page
