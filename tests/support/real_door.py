"""The application behind a real server on a free port, and what raw sockets say to it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from onboard.api.deadlines import Deadlines
from onboard.api.serve import listen
from support.real_services import wait_until


@contextmanager
def answering(
    app: FastAPI, protocol: type[Deadlines] = Deadlines, *, port: int = 0, start_seconds: float = 30, **config: Any
) -> Iterator[int]:
    """The port at which it answers meanwhile; streams of events end with it.

    Args:
        app: the application.
        protocol: how bytes become requests.
        port: where it listens; 0 takes a free one.
        start_seconds: how long its start may take.
        config: more of uvicorn.Config.
    """
    server = uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5, http=protocol, **config)
    )
    with closing(listen("127.0.0.1", port)) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started, start_seconds)
            yield listener.getsockname()[1]
        finally:
            if readers := getattr(app.state, "readers", None):  # there since the application started
                readers.end()
            server.should_exit = True
            thread.join()


def head_of(path: str, secret: str, *headers: str) -> bytes:
    """The head of a request that brings a form with the boundary x."""
    lines = [
        f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {secret}",
        "Content-Type: multipart/form-data; boundary=x", *headers,
    ]  # fmt: skip
    return "\r\n".join([*lines, "", ""]).encode()


def answer_of(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    """Status and document of the answer, after which the server closes."""
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        length = 0
        while line := stream.readline().strip():
            name, _, value = line.partition(b": ")
            length = int(value) if name.lower() == b"content-length" else length
        return status, json.loads(stream.read(length))
