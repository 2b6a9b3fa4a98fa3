"""Hostile names, files and connections: a problem with a stable code, nothing queued, no file left behind."""

from __future__ import annotations

import gzip
import json
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import waiting_child
from fastapi import FastAPI
from fastapi.testclient import TestClient
from submitting import submit
from support.real_door import answer_of, answering, head_of
from support.real_services import wait_until

from onboard.api import intake, measuring, upload_places, uploads
from onboard.bases import Base
from onboard.data import rows as data_rows
from onboard.domain.access import ALL_SCOPES
from onboard.operations.access import create_token
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services

HOSTILE = [
    "..",
    "../up",
    "../../../../etc/passwd",
    "a/../../b",
    "/etc/passwd",
    "..\\..\\boot.ini",
    "a\\b",
    "a\0b",
    "\0",
    "\u2025\u2215etc",
    "\uff0e\uff0e\uff0fetc",
    "\u0430bc",
    "pa\u202ews",
    "a" * 10_000,
    "~",
    "a b",
    "PAWS",
    "${HOME}",
    "=1+1",
]


def encoded(name: str) -> str:
    """Dots too: a client would leave folders out by itself."""
    return quote(name, safe="").replace(".", "%2E")


ENCODED = {"once": encoded, "twice": lambda name: encoded(encoded(name))}
FINE = {
    "form": "single",
    "file": "base.json",
    "token": "none",
    "task": "mood",
    "ref": "latest",
    "alias": "production",
    "job": "mood",
    "version": "1",
    "worker": "one",
}
BODIES = {"/v1/predict": {"inputs": [{"task": "sst2", "text": "fine"}]}, "/v1/queue/pause": {}}
CODES = {"input", "not_found", "method_not_allowed", "precondition_required", "too_large", "dataset"}
HEAD = b'--x\r\nContent-Disposition: form-data; name="dataset"; filename="a.jsonl"\r\n\r\n'


@pytest.fixture(autouse=True)
def _nothing_happens(door: TestClient, tiny_services: Services) -> Iterator[None]:
    """After every test: no job, no file of an upload, nothing new in the home, nothing beside it."""
    home = tiny_services.settings.resolved_home
    before = {path for path in home.parent.rglob("*") if "uploads" not in path.parts}
    yield
    with tiny_services.database.read() as session:
        assert JobRepository(session).list(limit=10) == []
    wait_until(lambda: not stored(home), 30)
    left = {path for path in home.parent.rglob("*") if "uploads" not in path.parts} - before
    assert {path for path in left if not path.name.startswith(("onboard.db", "child-"))} == set()


def stored(home: Path) -> list[Path]:
    """What uploads left."""
    return [path for path in home.joinpath("uploads").rglob("*") if path.is_file() and path.name != "lock"]


def require_problem(answer: Any, what: object) -> None:
    assert 400 <= answer.status_code < 500, what
    assert answer.headers["content-type"] == "application/problem+json", what
    document = answer.json()
    assert document["code"] in CODES, what
    assert document["status"] == answer.status_code, what
    assert len(answer.content) < 20_000 + 2 * len(str(what)), what


def operations(app: FastAPI) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in app.openapi()["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


@pytest.mark.parametrize("encoding", list(ENCODED))
def test_no_name_in_a_path_leads_anywhere(door: TestClient, app: FastAPI, tiny_base: Base, encoding: str) -> None:
    asked, fine = 0, FINE | {"digest": tiny_base.digest}
    for method, path, _ in operations(app):
        for place in re.findall(r"{(\w+)}", path):
            for name in HOSTILE:
                address = path.replace(f"{{{place}}}", ENCODED[encoding](name))
                address = re.sub(r"{(\w+)}", lambda parameter: fine[parameter[1]], address)
                require_problem(door.request(method, address, json={}), (method, address))
                asked += 1
    assert asked > 20 * len(HOSTILE)


def test_no_name_in_a_query_leads_anywhere(door: TestClient, app: FastAPI) -> None:
    asked = 0
    for method, path, operation in operations(app):
        names = [parameter for parameter in operation.get("parameters", []) if parameter["in"] == "query"]
        for parameter in names:
            if "pattern" not in json.dumps(parameter["schema"]):
                continue
            for name in HOSTILE:
                address = re.sub(r"{(\w+)}", lambda parameter: FINE[parameter[1]], path)
                given = {"a": "v1", "b": "v2"} if path.endswith("compare") else {}
                answer = door.request(method, address, params={**given, parameter["name"]: name})
                require_problem(answer, (address, parameter["name"], name))
                if "requestBody" not in operation:  # a file that is missing is what is refused there first
                    assert answer.json()["field"] == parameter["name"]
                asked += 1
    assert asked >= 5 * len(HOSTILE)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_no_name_in_a_body_leads_anywhere(door: TestClient, rows: bytes, name: str) -> None:
    for field in ("task", "queue", "base"):
        require_problem(submit(door, rows, **{field: name}), field)
    require_problem(submit(door, rows, init=name), "init")
    require_problem(submit(door, rows, init=f"mood@{name}"), "init")
    require_problem(door.post("/v1/queue/pause", json={"queue": name}), "pause")
    for wrong in ({"task": name, "text": "fine"}, {"task": "sst2", "ref": name, "text": "fine"}):
        require_problem(door.post("/v1/predict", json={"inputs": [wrong]}), wrong)


@pytest.mark.parametrize("name", ["../../up.jsonl", "/etc/up.jsonl", "..\\up.jsonl", "a\0b", "\u2025\u2215up", ".."])
def test_a_name_of_a_file_leads_nowhere_and_is_no_name_of_a_task(door: TestClient, name: str) -> None:
    answer = door.post("/v1/check", files={"dataset": (name, b'{"text": "", "label": "a"}\n')})
    require_problem(answer, name)
    assert "/" not in answer.json().get("problems", [{"file": ""}])[0]["file"]


def refused(door: TestClient, content: bytes, name: str = "weather.jsonl") -> dict[str, Any]:
    """What a submission of the content is answered; a check is answered the same."""
    answers = [door.post(path, files={"dataset": (name, content)}) for path in ("/v1/jobs", "/v1/check")]
    for answer in answers:
        require_problem(answer, name)
    documents: list[dict[str, Any]] = [answer.json() for answer in answers]
    assert documents[0] == documents[1]
    return documents[0]


def test_a_bomb_is_refused(door: TestClient) -> None:
    bomb = gzip.compress(b'{"text": "a", "label": "b"}\n' * 1_000_000)
    problem = refused(door, bomb, "weather.jsonl.gz")
    assert (problem["status"], problem["code"], problem["field"], problem["limit"]) == (422, "input", "dataset", 100)


def test_too_many_bytes_are_refused(door: TestClient, rows: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(uploads, "MAX_UPLOAD_BYTES", 500)
        assert (refused(door, rows)["status"], refused(door, rows)["code"]) == (413, "too_large")
    monkeypatch.setattr(measuring, "MAX_FILE_BYTES", 500)
    assert refused(door, gzip.compress(rows))["limit"] == 500


def test_too_many_rows_and_too_long_a_line_are_named(
    door: TestClient, rows: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(data_rows, "MAX_ROWS", 10)
        patched.setattr(intake, "call_in_child", lambda _left, _bounds, do, *args, **kwargs: do(*args, **kwargs))
        problem = refused(door, rows)
    assert (problem["status"], problem["code"], problem["problems"][0]["code"]) == (422, "dataset", "too_many_rows")
    long = b'{"text": "%s", "label": "good"}\n' % (b"x" * (1 << 20))
    problem = refused(door, rows + long)
    assert (problem["code"], problem["problems"][0]["code"], problem["problems"][0]["row"]) == (
        "dataset",
        "line_too_long",
        41,
    )


@pytest.fixture
def secret(tiny_services: Services) -> str:
    return create_token(tiny_services.database, "raw", [scope.value for scope in ALL_SCOPES])[1]


def test_a_connection_that_is_cut_in_the_middle_leaves_nothing(app: FastAPI, secret: str) -> None:
    with answering(app) as port:
        uploads_folder = app.state.uploads
        for cut in ("closed", "reset"):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(head_of("/v1/jobs", secret, "Content-Length: 1000000") + HEAD + b"some ro")
                wait_until(lambda: list(uploads_folder.rglob("a.jsonl")), 30)
                if cut == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            wait_until(lambda: not list(uploads_folder.iterdir()), 30)
        with socket.create_connection(("127.0.0.1", port)) as connection:  # and it answers the next one
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_who_sends_the_ninth_upload_at_once_is_asked_to_come_again(
    app: FastAPI, secret: str, rows: bytes, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_places, "SETTLED_SECONDS", 600.0)  # nobody knows yet how fast the others are
    others_secret, third = (create_token(tiny_services.database, name, ["submit"])[1] for name in ("other", "third"))
    begun = [
        head_of("/v1/check", one, "Content-Length: 1000000") + HEAD + b"some ro" for one in (secret, others_secret)
    ]
    body = HEAD + rows + b"\r\n--x--\r\n"
    whole = head_of("/v1/check", third, f"Content-Length: {len(body)}") + body
    with answering(app) as port, ExitStack() as others:
        folder = app.state.uploads
        for number in range(8):  # one token has half of the places
            others.enter_context(socket.create_connection(("127.0.0.1", port))).sendall(begun[number % 2])
        wait_until(lambda: len(list(folder.rglob("a.jsonl"))) == 8, 30)
        with socket.create_connection(("127.0.0.1", port)) as ninth:
            ninth.sendall(whole)
            status, document = answer_of(ninth)
        assert (status, document["code"], document["retry_after_seconds"]) == (503, "unavailable", 10)
        others.close()
        wait_until(lambda: not list(folder.iterdir()), 30)
        with socket.create_connection(("127.0.0.1", port)) as next_one:
            next_one.sendall(whole)
            assert answer_of(next_one)[0] == 200


def test_a_form_that_ends_too_early_is_told_to_be_cut_off(app: FastAPI, secret: str) -> None:
    piece = HEAD + b"some ro"
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(piece), piece)
    with answering(app) as port, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head_of("/v1/jobs", secret, "Transfer-Encoding: chunked") + chunked)
        status, document = answer_of(connection)
    assert (status, document["code"]) == (422, "input")
    assert "cut off" in document["detail"]


def test_a_client_that_leaves_ends_the_check_of_its_dataset(
    app: FastAPI, secret: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "SMALL_BYTES", 0)
    monkeypatch.setattr(intake.submissions, "check", waiting_child.wait_for_ever)
    monkeypatch.setattr("onboard.api.receiving.ReceivedForm.submission", lambda received: marked)
    marker = tmp_path / "child-there"
    marked = intake.Submission("none", task=str(marker))
    body = HEAD + b"some rows\r\n--x--\r\n"
    with answering(app) as port:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(head_of("/v1/check", secret, f"Content-Length: {len(body)}") + body)
            wait_until(marker.exists, 60)
            assert app.state.intake._one_child.locked()
        wait_until(lambda: not app.state.intake._one_child.locked(), 30)
