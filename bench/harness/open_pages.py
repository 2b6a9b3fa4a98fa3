"""Pages that stand open in browsers: each follows the service's events, all of them in a separate process."""

from __future__ import annotations

import multiprocessing
import selectors
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event
from typing import Final
from urllib.parse import urlsplit

_START_SECONDS: Final = 120.0
_AT_ONCE: Final = 2**16  # bytes


@contextmanager
def open_pages(url: str, token: str, count: int) -> Iterator[None]:
    """So many readers of the overview, until the end of the block; it begins once each has got its first event.

    Raises:
        RuntimeError: they did not get it in time.
    """
    spawned = multiprocessing.get_context("spawn")
    ready = spawned.Event()
    process = spawned.Process(target=_follow, args=(url, token, count, ready), daemon=True)
    process.start()
    try:
        if not ready.wait(_START_SECONDS):
            raise RuntimeError(f"{count} pages could not be opened")
        yield
    finally:
        process.terminate()
        process.join()


def _follow(url: str, token: str, count: int, ready: Event) -> None:
    address = urlsplit(url)
    request = (
        f"GET /live?of=overview HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {token}\r\n"
        "Accept: text/event-stream\r\n\r\n"
    ).encode()
    waiting = set(range(count))
    with selectors.DefaultSelector() as selector, ExitStack() as connections:
        for number in range(count):
            connection = socket.create_connection((address.hostname, address.port), _START_SECONDS)
            connections.enter_context(connection)
            connection.sendall(request)
            selector.register(connection, selectors.EVENT_READ, number)
        while True:
            for key, _ in selector.select():
                sent = key.fileobj.recv(_AT_ONCE)  # type: ignore[union-attr]
                if not sent:
                    return  # the service left
                if b"event: " in sent:
                    waiting.discard(key.data)
            if not waiting:
                ready.set()
