"""HEAD wherever there is GET: the same status and headers without the body. Monitors and balancers ask that way."""

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
    """Whether a route that sees GET is asked for its headers only."""
    return bool(request.scope.get("state", {}).get(_ASKED))


class Heads:
    """ASGI middleware: a HEAD is asked as a GET, of which only the head is sent. A stream ends with its head."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; of a HEAD's answer pass the head back."""
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
                        answering.cancel()  # nobody reads the rest, and a stream of events has no end

            await self._app(got, receive, sent)
