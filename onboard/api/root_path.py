"""Serve below a path prefix of a reverse proxy, such as /onboard, which may or may not strip it.

Within the application every path begins at "/". Only the output contains the prefix: addresses on pages (`root` in the
templates), and the headers that redirect a browser, which are handled here.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onboard.api.access import routes_of
from onboard.errors import InputError

_ADDRESSES: Final = ("location", "content-location", "hx-redirect")


def install(app: FastAPI, root: str) -> None:
    """Serve the application below a path; install it after the guard, which then sees paths without the prefix.

    Args:
        root: the prefix, as in the settings; "" for none.

    Raises:
        InputError: the application itself has paths with this prefix.
    """
    if not root:
        return
    if any(_is_below(route.path or "", root) for route in routes_of(app)):
        raise InputError("root-path-taken", root=root)
    app.add_middleware(RootPath, root=root)


class RootPath:
    """ASGI middleware that strips the prefix from requests and adds it to addresses in responses.

    Args:
        root: begins with a slash and does not end with one.
    """

    def __init__(self, app: ASGIApp, root: str) -> None:
        self._app = app
        self._root = root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on as if it had been sent to "/"."""
        if scope["type"] == "http":
            scope, send = self._within(scope), self._outwards(send)
        await self._app(scope, receive, send)

    def _within(self, scope: Scope) -> Scope:
        if not _is_below(scope["path"], self._root):
            return scope  # the proxy has stripped the prefix, or it was not used
        without: dict[str, Any] = {**scope, "path": scope["path"][len(self._root) :] or "/"}
        raw = scope.get("raw_path")
        if raw and raw.startswith(self._root.encode()):
            without["raw_path"] = raw[len(self._root) :] or b"/"
        return without

    def _outwards(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name in _ADDRESSES:
                    if headers.get(name, "").startswith("/"):
                        headers[name] = self._root + headers[name]
            await send(message)

        return sent


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root}/")
