"""A small HTTP server on this machine; what it answers is each test module's own."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class SilentHandler(BaseHTTPRequestHandler):
    """Says nothing on standard error."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives it
        pass


@contextmanager
def serving(handler: type[SilentHandler], tls: ssl.SSLContext | None = None) -> Iterator[ThreadingHTTPServer]:
    """The server, which answers on a free port meanwhile; with TLS where a context is given."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
