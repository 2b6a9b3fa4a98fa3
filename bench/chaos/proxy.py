"""A TCP proxy on loopback that can cut, refuse, stall and half close what goes through it."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self, TypeVar

_RESET = struct.pack("ii", 1, 0)  # closing sends RST: the other side hears of it at once, unread bytes are lost
_BYTES = 2**16
Answer = TypeVar("Answer")


class Proxy:
    """Passes connections on to a port of this machine, in a separate thread. A context manager.

    Args:
        target: port that it stands before.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._clients: set[asyncio.StreamWriter] = set()
        self._servers: set[asyncio.StreamWriter] = set()
        self._abandoned: set[asyncio.StreamWriter] = set()
        self._refusing = False

    def __enter__(self) -> Self:
        self._thread.start()
        self.port = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(self, *_error: object) -> None:
        self._called(self._server.close)
        self._called(self._resume)
        self._called(self._cut)
        asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Reset every connection, on both sides."""
        self._called(self._cut)

    def refuse(self) -> None:
        """Reset every connection, and each new one too, until `resume`."""
        self._called(self._refuse)

    def stall(self) -> None:
        """Hold every byte back, in connections that exist and in new ones, until `resume`."""
        self._called(self._flowing.clear)

    def half_close(self) -> None:
        """Reset the clients' side; the server is not told of it until `resume`."""
        self._called(self._half_close)

    def resume(self) -> None:
        """Let everything through again; abandoned connections of the server are reset."""
        self._called(self._resume)

    def _called(self, what: Callable[[], Answer]) -> Answer:
        async def call() -> Answer:
            return what()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(10)

    async def _open(self) -> int:
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _finish(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        if self._refusing:
            _reset(client)
            return
        try:
            back, server = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            _reset(client)
            return
        self._clients.add(client)
        self._servers.add(server)
        try:
            await asyncio.gather(self._pump(reader, server), self._pump(back, client))
        finally:
            self._clients.discard(client)
            self._servers.discard(server)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(_BYTES):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        if sink not in self._abandoned:
            sink.close()

    def _cut(self) -> None:
        for writer in (*self._clients, *self._servers):
            _reset(writer)

    def _refuse(self) -> None:
        self._refusing = True
        self._cut()

    def _half_close(self) -> None:
        self._abandoned |= self._servers
        for client in tuple(self._clients):
            _reset(client)

    def _resume(self) -> None:
        self._refusing = False
        for server in self._abandoned:
            _reset(server)
        self._abandoned.clear()
        self._flowing.set()


def _reset(writer: asyncio.StreamWriter) -> None:
    raw: Any = writer.get_extra_info("socket")
    with suppress(OSError):
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
