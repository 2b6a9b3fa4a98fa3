"""Answer HEAD for every GET route, with the same status and headers and no body, for monitors and load balancers."""

from __future__ import annotations

from typing import Final

import anyio
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ASKED: Final = "head_only"


def install(app: FastAPI) -> None:
    """Let every GET route answer HEAD, too."""
    app.add_middleware(Heads)


def asks_for_head(request: Request) -> bool:
    """Return whether the request that a route sees as GET is a HEAD."""
    return bool(request.scope.get("state", {}).get(_ASKED))


class Heads:
    """ASGI middleware that handles a HEAD as a GET and sends only the head. A stream ends with its head."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; for a HEAD, return only the head of the response."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        got = {**scope, "method": "GET", "state": {**scope.get("state", {}), _ASKED: True}}
        with anyio.CancelScope() as answering:

            async def sent(message: Message) -> None:
                if message["type"] == "http.response.start":
                    await send(message)
                elif message["type"] == "http.response.body" and not answering.cancel_called:
                    await send({"type": "http.response.body", "body": b""})
                    if message.get("more_body"):
                        answering.cancel()  # nobody reads the rest, and event streams do not end

            await self._app(got, receive, sent)
