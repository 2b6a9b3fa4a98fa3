"""Every route and method of the application, as its router has them: who gets in and who does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import update
from support.callers import bearer

from onboard.api.access import is_open, routes_of
from onboard.api.app import create_app
from onboard.domain.access import Scope
from onboard.operations import access
from onboard.registry.access_tables import TokenRow
from onboard.registry.services import Services

ANYBODY, SIGNED_IN = "open", "any token"  # beside the scopes
# Each route has a line here, or the first test fails: who may what is decided by a person.
TABLE: Final = """
    GET     /healthz                                        open
    GET     /readyz                                         open
    GET     /login                                          open
    POST    /login                                          open
    GET     /login/oidc                                     open
    GET     /login/oidc/callback                            open
    GET     /                                               any token
    GET     /static/{name}                                  open
    GET     /favicon.ico                                    open
    POST    /logout                                         any token
    GET     /overview.json                                  read
    GET     /live                                           read
    GET     /live/{job}                                     read
    POST    /queue/pause                                    ops
    POST    /queue/resume                                   ops
    POST    /workers/drain                                  ops
    POST    /jobs/{job}/cancel                              submit
    POST    /jobs/{job}/retry                               submit
    POST    /jobs/{job}/relabel                             submit
    POST    /jobs/{job}/relabeled.jsonl                     submit
    GET     /jobs                                           read
    GET     /jobs.json                                      read
    POST    /jobs/selected                                  submit
    POST    /jobs/matching                                  submit
    GET     /jobs/{job}                                     read
    GET     /jobs/{job}.json                                read
    GET     /tasks                                          read
    GET     /tasks.json                                     read
    GET     /tasks/{task}                                   read
    GET     /tasks/{task}.json                              read
    GET     /tasks/{task}/compare                           read
    GET     /tasks/{task}/compare.json                      read
    POST    /tasks/{task}/compare                           submit
    GET     /tasks/{task}/drift                             read
    GET     /tasks/{task}/drift.json                        read
    GET     /tasks/{task}/evaluate                          submit
    POST    /tasks/{task}/evaluate                          submit
    GET     /tasks/{task}/change                            submit
    GET     /tasks/{task}/change.json                       submit
    POST    /tasks/{task}/rows                              submit
    POST    /tasks/{task}/labels                            submit
    POST    /tasks/{task}/promote                           promote
    POST    /tasks/{task}/rollback                          promote
    POST    /tasks/{task}/try                               read
    GET     /submit                                         submit
    GET     /submit.json                                    submit
    POST    /submit                                         submit
    POST    /submit/check                                   submit
    GET     /map                                            read
    GET     /map.json                                       read
    GET     /hypernetworks                                  read
    GET     /hypernetworks.json                             read
    GET     /hypernetworks/{version}                        read
    GET     /hypernetworks/{version}.json                   read
    POST    /hypernetworks/{version}/revert                 ops
    GET     /priors                                         read
    GET     /priors.json                                    read
    GET     /tokens                                         admin
    GET     /tokens.json                                    admin
    POST    /tokens                                         admin
    POST    /tokens/limit                                   admin
    POST    /tokens/revoke                                  admin
    POST    /sessions/end                                   admin
    GET     /audit                                          admin
    GET     /audit.json                                     admin
    GET     /webhooks                                       ops
    GET     /webhooks.json                                  ops
    GET     /v1/me                                          any token
    GET     /docs                                           read
    GET     /openapi.json                                   read
    GET     /metrics                                        ops
    POST    /v1/check                                       submit
    POST    /v1/jobs                                        submit
    GET     /v1/jobs                                        read
    GET     /v1/jobs/{job}                                  read
    GET     /v1/jobs/{job}/events                           read
    GET     /v1/jobs/{job}/logs                             ops
    GET     /v1/jobs/{job}/report                           read
    POST    /v1/jobs/{job}/cancel                           submit
    POST    /v1/jobs/{job}/retry                            submit
    POST    /v1/predict                                     read
    GET     /v1/queue                                       read
    GET     /v1/queue/jobs                                  read
    POST    /v1/queue/pause                                 ops
    POST    /v1/queue/resume                                ops
    GET     /v1/workers                                     read
    POST    /v1/workers/{worker}/drain                      ops
    GET     /v1/tasks                                       read
    GET     /v1/tasks/{task}                                read
    DELETE  /v1/tasks/{task}                                admin
    GET     /v1/tasks/{task}/versions                       read
    POST    /v1/tasks/{task}/rows                           submit
    GET     /v1/tasks/{task}/labels                         read
    POST    /v1/tasks/{task}/labels                         submit
    GET     /v1/label-studio/{task}                         read
    GET     /v1/label-studio/{task}/health                  read
    POST    /v1/label-studio/{task}/setup                   submit
    POST    /v1/label-studio/{task}/predict                 read
    POST    /v1/label-studio/{task}/webhook                 submit
    GET     /v1/tasks/{task}/compare                        read
    POST    /v1/tasks/{task}/compare                        submit
    POST    /v1/tasks/{task}/evaluate                       submit
    POST    /v1/tasks/{task}/carry                          promote
    POST    /v1/carry                                       promote
    GET     /v1/tasks/{task}/drift                          read
    GET     /v1/tasks/{task}/lineage                        read
    GET     /v1/tasks/{task}/lineage.svg                    read
    GET     /v1/tasks/{task}/embeddings/{ref}               read
    GET     /v1/tasks/{task}/embeddings/{ref}.safetensors   read
    GET     /v1/tasks/{task}/readouts/{ref}.safetensors     read
    GET     /v1/tasks/{task}/aliases/{alias}                read
    PUT     /v1/tasks/{task}/aliases/{alias}                promote
    POST    /v1/tasks/{task}/aliases/{alias}/rollback       promote
    GET     /v1/embeddings                                  read
    GET     /v1/hypernetworks                               read
    GET     /v1/hypernetworks/{version}                     read
    GET     /v1/hypernetworks/{version}.safetensors         read
    POST    /v1/hypernetworks/{version}/revert              ops
    GET     /v1/priors                                      read
    GET     /v1/priors/{form}                               read
    GET     /v1/bases                                       read
    GET     /v1/bases/{digest}                              read
    GET     /v1/bases/{digest}/{file:path}                  read
    GET     /v1/tokens                                      admin
    POST    /v1/tokens                                      admin
    DELETE  /v1/tokens/{token}                              admin
    PATCH   /v1/quotas/{owner}                              admin
    GET     /v1/sessions                                    admin
    DELETE  /v1/sessions/{session}                          admin
    GET     /v1/audit                                       admin
"""
NEEDED: Final = {(words[0], words[1]): " ".join(words[2:]) for line in TABLE.split("\n") if (words := line.split())}
FILLED: Final = {
    "{version}": "1",
    "{digest}": "sha256:" + "0" * 64,
    "{job}": "0123456789ab",
    "{file:path}": "no/such/file",
}
METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND")


def address(path: str) -> str:
    """A path with something that fits, and is not there, for every parameter."""
    for parameter, value in FILLED.items():
        path = path.replace(parameter, value)
    return path.replace("{", "no-").replace("}", "")


GUARDED: Final = sorted({address(path) for _, path in NEEDED if not is_open(path)})
ELSEWHERE: Final = [
    "/v1",
    "/v1/",
    "/v1/nothing",
    "/V1/jobs",
    "//v1/jobs",
    "/healthz/",
    "/login/../v1/jobs",
    "/staticky",
]


@pytest.fixture
def client(tiny_services: Services) -> Iterator[TestClient]:
    settings = tiny_services.settings.model_copy(update={"start_worker": False, "requests_per_minute": 0})
    with TestClient(create_app(settings), base_url="http://localhost", follow_redirects=False) as client:
        client.app.state.failures._per_minute = 0  # type: ignore[attr-defined]  # else it says 429 after sixty
        client.app.state.readers.end()  # type: ignore[attr-defined]  # a stream of news has no end of its own
        yield client


def test_every_route_of_the_application_is_in_the_table_and_no_other(client: TestClient) -> None:
    assert isinstance(client.app, FastAPI)
    routes = {
        (method, route.path)
        for route in routes_of(client.app)
        for method in getattr(route, "methods", None) or ("ANY",)
    }
    assert routes == set(NEEDED)


def test_the_open_paths_are_seven() -> None:
    assert {path for path in (*GUARDED, *(path for _, path in NEEDED)) if is_open(path)} == {
        "/healthz", "/readyz", "/login", "/login/oidc", "/login/oidc/callback", "/static/{name}", "/favicon.ico",
    }  # fmt: skip
    assert is_open("/static/logo.svg")
    assert not any(map(is_open, ("/statics", "/healthz/x", "/Login", "")))


def test_without_a_token_every_method_of_every_path_is_a_401_problem(client: TestClient) -> None:
    for path in (*GUARDED, *ELSEWHERE):
        for method in METHODS:
            answer = client.request(method, path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (method, path)
            if path != "/":
                assert answer.headers["content-type"] == "application/problem+json", (method, path)
                assert method == "HEAD" or answer.json()["code"] == "sign_in"


def test_what_lies_under_static_is_open_and_leads_nowhere_else(client: TestClient) -> None:
    for path in ("/static/nothing.css", "/static/../v1/jobs", "/static/%2e%2e/v1/jobs", "/static//v1/jobs"):
        assert client.get(path).status_code in (401, 404), path


def expired(services: Services) -> str:
    token, secret = access.create_token(services.database, "old", ["read"], "1d")
    with services.database.write() as session:
        session.execute(update(TokenRow).where(TokenRow.id == token.id).values(expires_at=TokenRow.created_at))
    return secret


def revoked(services: Services) -> str:
    token, secret = access.create_token(services.database, "gone", ["read"])
    access.revoke_token(services.database, token.id)
    return secret


def damaged(services: Services) -> str:
    secret = access.create_token(services.database, "cut", ["read"])[1]
    return secret[:-1] + ("A" if secret[-1] != "A" else "B")


WRONG: Final = {
    "expired": lambda services: f"Bearer {expired(services)}",
    "revoked": lambda services: f"Bearer {revoked(services)}",
    "damaged": lambda services: f"Bearer {damaged(services)}",
    "of another service": lambda _services: "Bearer onb_" + "Zx09-_" * 7 + "A",
    "its digest": lambda services: f"Bearer {digest_of(services)}",
    "of another kind": lambda services: f"Basic {access.create_token(services.database, 'kind', ['read'])[1]}",
    "without a word": lambda services: access.create_token(services.database, "bare", ["read"])[1],
    "empty": lambda _services: "Bearer ",
}


def digest_of(services: Services) -> str:
    token, _ = access.create_token(services.database, "kept", ["read"])
    with services.database.read() as session:
        row = session.get(TokenRow, token.id)
        assert row is not None
        return row.hash


@pytest.mark.parametrize("what", WRONG)
def test_a_token_that_is_not_good_opens_nothing(client: TestClient, tiny_services: Services, what: str) -> None:
    headers = {"Authorization": WRONG[what](tiny_services)}
    for method, path in NEEDED:
        if is_open(path):
            continue
        for used in (method, "HEAD", "OPTIONS"):
            assert client.request(used, address(path), headers=headers).status_code == 401, (used, path)


def test_a_good_token_in_the_address_or_in_a_form_opens_nothing(client: TestClient, tiny_services: Services) -> None:
    secret = access.create_token(tiny_services.database, "shown", ["read"])[1]
    for name in ("token", "access_token", "api_key", "code"):
        assert client.get("/v1/jobs", params={name: secret}).status_code == 401
    assert client.post("/v1/predict", data={"access_token": secret}).status_code == 401
    assert client.get("/v1/jobs", headers={"X-Api-Key": secret}).status_code == 401
    assert client.get("/v1/jobs", headers={"Cookie": f"onboard_session={secret}"}).status_code == 401


@pytest.mark.parametrize("held", list(Scope))
def test_a_scope_opens_just_what_is_listed(client: TestClient, tiny_services: Services, held: Scope) -> None:
    headers = bearer(tiny_services.database, held)
    for (method, path), needed in NEEDED.items():
        if needed in (ANYBODY, SIGNED_IN):
            continue
        answer = client.request(method, address(path), headers=headers)
        if needed == held:
            assert answer.status_code not in (401, 403, 500), (method, path, answer.text)
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "scope"), (method, path)
            assert answer.json()["scope"] == needed


def test_any_token_opens_what_needs_no_scope(client: TestClient, tiny_services: Services) -> None:
    headers = bearer(tiny_services.database, Scope.SUBMIT)
    for (method, path), needed in NEEDED.items():
        if needed == SIGNED_IN:
            assert client.request(method, path, headers=headers).status_code in (200, 303), (method, path)


def test_methods_that_a_path_does_not_have_are_405_with_a_token(client: TestClient, tiny_services: Services) -> None:
    headers = bearer(tiny_services.database, *Scope)
    for path in GUARDED:
        has = {method for method, route in NEEDED if address(route) == path}
        if "GET" not in has:  # HEAD is answered as GET is; see test_heads
            assert client.head(path, headers=headers).status_code == client.get(path, headers=headers).status_code
        for method in ("OPTIONS", "PATCH"):
            if method not in has:
                assert client.request(method, path, headers=headers).status_code == 405, (method, path)
