"""HEAD: what GET would answer, without the body; monitors and load balancers ask that way."""

from __future__ import annotations

import socket

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.real_door import answering
from support.real_services import wait_until
from support.registry_samples import add_job

from onboard.api.access import routes_of
from onboard.domain.access import Scope
from onboard.operations.access import create_token, offer_code
from onboard.registry.services import Services

_OF_A_JOB = ("/logs", "/report")


def test_every_get_route_answers_head_as_it_answers_get(door: TestClient, app: FastAPI, stage: Services) -> None:
    add_job(stage.database, "mood")
    given = {"task": "mood", "ref": "v1", "alias": "latest", "job": "mood", "version": "1", "name": "onboard.css"}
    asked = 0
    for route in routes_of(app):
        path = route.path or ""
        if "GET" not in (route.methods or ()) or path.endswith("/events") or path.startswith("/live"):
            continue  # streams are asked below
        for name, value in given.items():
            path = path.replace("{" + name + "}", value)
        got, head = door.get(path), door.head(path)
        assert head.status_code == got.status_code, path
        assert head.content == b"", path
        assert head.headers["content-type"] == got.headers["content-type"], path
        assert head.headers.get("etag") == got.headers.get("etag"), path
        asked += 1
    assert asked > 40


def test_head_needs_the_scope_that_get_needs(client: TestClient) -> None:
    assert client.head("/healthz").status_code == client.head("/readyz").status_code == 200
    assert client.head("/v1/jobs").status_code == 401
    assert client.head("/v1/queue/pause").status_code in (401, 405)


def test_a_look_at_the_headers_of_a_sign_in_link_does_not_use_it_up(
    client: TestClient, tiny_services: Services
) -> None:
    link = f"/login?code={offer_code(tiny_services.database)}"
    assert client.head(link).status_code == 200
    assert "set-cookie" not in client.head(link).headers
    assert client.get(link).status_code == 303


@pytest.mark.parametrize("path", ["/v1/jobs/weather/events", "/live", "/live/weather"])
def test_a_stream_ends_with_its_head_and_gives_its_place_back(app: FastAPI, tiny_services: Services, path: str) -> None:
    add_job(tiny_services.database, "weather")
    secret = create_token(tiny_services.database, "raw", [Scope.READ])[1]
    with answering(app) as port, socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        head = f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n"
        for _ in range(2):  # on one connection: nothing of the first answer is in the way of the second
            connection.sendall(head.encode())
            said = b""
            while b"\r\n\r\n" not in said:
                said += connection.recv(4096)
            assert said.startswith(b"HTTP/1.1 200")
            assert said.endswith(b"\r\n\r\n")
        wait_until(lambda: app.state.readers.present == 0, 30)
