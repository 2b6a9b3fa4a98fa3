"""A receiver of webhooks that remembers what it got and answers as it is told to."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.small_server import SilentHandler, serving


@dataclass
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document


@dataclass
class Receiver:
    """Answers with `status`, after `seconds`; `arrived` is set by every message before."""

    port: int = 0
    status: int = 204
    seconds: float = 0.0
    messages: list[Received] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=secret"


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver on a free port of this machine."""
    receiver = Receiver()

    class Handler(SilentHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.messages.append(Received(self.path, headers, body))
            receiver.arrived.set()
            time.sleep(receiver.seconds)
            self.send_response(receiver.status)
            if 300 <= receiver.status < 400:
                self.send_header("location", "/elsewhere")
            self.end_headers()

    with serving(Handler, tls) as server:
        server.handle_error = lambda *_words: None  # type: ignore[method-assign]  # a client that refused us
        receiver.port = server.server_port
        yield receiver
