"""Whoever sends slowly is cut off at a deadline, and gives its place to those who do not."""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from threading import Event, Thread

import pytest
from fastapi import FastAPI
from support.real_door import answer_of, answering, head_of
from support.real_services import wait_until

from onboard.api import upload_places
from onboard.api.deadlines import BODY_BYTES_PER_SECOND, Deadlines
from onboard.api.serve import serve
from onboard.api.upload_places import Sender, UploadPlaces
from onboard.domain.access import ALL_SCOPES, acting
from onboard.errors import UnavailableError
from onboard.operations.access import create_token
from onboard.registry.services import Services

HEAD = b'--x\r\nContent-Disposition: form-data; name="dataset"; filename="a.jsonl"\r\n\r\n'
ALIVE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Quick(Deadlines):
    """Deadlines that a test can wait for."""

    head_seconds = 1.0
    body_seconds = 1.5


@pytest.fixture
def secret(tiny_services: Services) -> str:
    return create_token(tiny_services.database, "slow", [scope.value for scope in ALL_SCOPES])[1]


@pytest.fixture
def port(app: FastAPI) -> Iterator[int]:
    with answering(app, Quick) as port:
        yield port


def trickle(connection: socket.socket, begun: bytes, seconds: float = 30.0) -> tuple[bytes, float]:
    """Send `begun`, then a byte now and then, until the server closes: what it said, and after how long."""
    over = Event()

    def drop_by_drop() -> None:
        with suppress(OSError):
            connection.sendall(begun)
            while not over.wait(0.2):
                connection.sendall(b"x")

    began = time.monotonic()
    connection.settimeout(seconds)
    sender = Thread(target=drop_by_drop)
    sender.start()
    said = b""
    try:
        with suppress(ConnectionResetError):
            while piece := connection.recv(1000):
                said += piece
        return said, time.monotonic() - began
    finally:
        over.set()
        sender.join()


@pytest.mark.parametrize("begun", [b"GET /healthz HTTP/1.1\r\nX: ", b"P", ALIVE + b"GET / HT"])
def test_a_head_that_never_ends_is_cut_off(port: int, begun: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        said, seconds = trickle(connection, begun)
    assert said.count(b"HTTP/1.1 408 ") == 1
    assert 0.9 < seconds < 15


def test_a_connection_that_says_nothing_is_closed(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        assert connection.recv(100) == b""


@pytest.mark.parametrize("path", ["/v1/check", "/v1/jobs"])
def test_an_upload_that_never_ends_is_cut_off_and_leaves_nothing(
    app: FastAPI, port: int, secret: str, path: str
) -> None:
    with socket.create_connection(("127.0.0.1", port)) as connection:
        said, seconds = trickle(connection, head_of(path, secret, "Content-Length: 1000000") + HEAD)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert 1.4 < seconds < 15
    wait_until(lambda: not list(app.state.uploads.iterdir()), 30)


def test_another_body_that_never_ends_is_cut_off_too(port: int, secret: str) -> None:
    head = head_of("/v1/predict", secret, "Content-Length: 1000").replace(
        b"multipart/form-data; boundary=x", b"application/json"
    )
    with socket.create_connection(("127.0.0.1", port)) as connection:
        said, _ = trickle(connection, head + b"{")
    assert said.startswith(b"HTTP/1.1 408 ")


def test_a_body_earns_time_with_its_bytes(port: int, secret: str, rows: bytes) -> None:
    """It takes longer than the deadline, at twice the pace that earns its time."""
    filler = b"\n" * (2 * BODY_BYTES_PER_SECOND // 4)
    body = HEAD + rows
    pieces = [filler] * 12
    length = len(body) + sum(map(len, pieces)) + len(b"\r\n--x--\r\n")
    with socket.create_connection(("127.0.0.1", port), 60) as connection:
        connection.sendall(head_of("/v1/check", secret, f"Content-Length: {length}") + body)
        for piece in pieces:
            time.sleep(0.25)
            connection.sendall(piece)
        connection.sendall(b"\r\n--x--\r\n")
        assert answer_of(connection)[0] == 200


def test_connections_that_keep_to_the_deadlines_stay_open_for_the_next_request(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as connection:
        for _ in range(4):
            connection.sendall(ALIVE[:10])
            time.sleep(0.5)
            connection.sendall(ALIVE[10:])
            assert answer_of(connection)[0] == 200


def test_eight_slow_uploads_do_not_hold_all_places(
    app: FastAPI, secret: str, rows: bytes, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_places, "SETTLED_SECONDS", 0.0)
    other = create_token(tiny_services.database, "other", ["submit"])[1]  # one token has half of the places
    begun = [head_of("/v1/check", one, "Content-Length: 1000000") + HEAD + b"some ro" for one in (secret, other)]
    body = HEAD + rows + b"\r\n--x--\r\n"
    third = create_token(tiny_services.database, "third", ["submit"])[1]
    whole = head_of("/v1/check", third, f"Content-Length: {len(body)}") + body
    with answering(app) as port, ExitStack() as others:
        slow = [others.enter_context(socket.create_connection(("127.0.0.1", port), 60)) for _ in range(8)]
        for number, connection in enumerate(slow):
            connection.sendall(begun[number % 2])
        wait_until(lambda: len(list(app.state.uploads.rglob("a.jsonl"))) == 8, 30)
        with socket.create_connection(("127.0.0.1", port), 60) as ninth:
            ninth.sendall(whole)
            assert answer_of(ninth)[0] == 200
        wait_until(lambda: len(list(app.state.uploads.iterdir())) == 7, 30)
        (displaced,), _, _ = select.select(slow, [], [], 30)
        status, document = answer_of(displaced)
        assert (status, document["code"], document["retry_after_seconds"]) == (503, "unavailable", 10)
        assert "slower than 64 KiB/s while others waited" in document["detail"]


async def _the_slowest_gives_way() -> None:
    now = 100.0
    places = UploadPlaces(3, clock=lambda: now)
    with ExitStack() as held:

        def taken(who: str) -> Sender:
            with acting(who):
                return held.enter_context(places.place())

        quick, slow, slower = taken("a"), taken("b"), taken("c")
        with pytest.raises(UnavailableError):
            taken("d")
        now += 10
        quick.received_bytes, slow.received_bytes, slower.received_bytes = 10**7, 1000, 10
        taken("d")
        assert [sender.scope.cancel_called for sender in (quick, slow, slower)] == [False, False, True]
        slow.has_arrived = True
        with pytest.raises(UnavailableError):
            taken("e")


def test_the_slowest_gives_way_and_nobody_who_keeps_pace_or_has_arrived() -> None:
    asyncio.run(_the_slowest_gives_way())


def test_the_real_door_has_the_deadlines() -> None:
    assert "Deadlines" in serve.__code__.co_names
