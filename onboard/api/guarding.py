"""Middleware in front of every route: checks host, identity and rate limit, and adds security headers.

It runs before any byte of a body is read: without a token, nobody can make the service store anything.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import socket
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request, cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from onboard.api.access import SESSION_COOKIE, is_open
from onboard.api.headers import with_headers
from onboard.api.limits import RateLimit
from onboard.api.sign_in_page import provider_of, sign_in_page
from onboard.api.uploads import MAX_UPLOAD_BYTES
from onboard.broker.shared_limits import shared_buckets
from onboard.domain.access import Identity, acting
from onboard.errors import HeadTooLargeError, HostError, NotAllowedError, OnboardError, SignInError, TooLargeError
from onboard.operations.access import identify, identify_session, note_use
from onboard.registry.services import Services
from onboard.settings import Settings

BODY_BYTES: Final = 8 * 2**20  # of a request, except uploads
OPEN_BODY_BYTES: Final = 16 * 2**10  # of an unauthenticated request
HEAD_BYTES: Final = 16 * 2**10  # of address and headers together
_UNLIMITED: Final = "/healthz"  # it is cheap, and monitoring must not be limited by other clients
_UPLOADS: Final = ("/v1/jobs", "/v1/check", "/submit", "/submit/check")  # these limit their uploads themselves
_ROWS: Final = re.compile("(/v1)?/tasks/[^/]+/rows")  # likewise
_LABEL_STUDIO: Final = "/v1/label-studio/"
_CUSTOMER_BITS: Final = 64
FAILURES_PER_MINUTE: Final = 60  # wrong tokens and codes per address
_PORTS: Final = {"http": 80, "https": 443}
_SHOWN: Final = 200  # characters of a header in a message
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
ErrorHandler = Callable[[Request, Exception], Response]


def install(app: FastAPI, settings: Settings, answer: ErrorHandler) -> None:
    """Install the guard in front of the application's routes.

    Args:
        answer: renders a refusal for the client.
    """
    shared = app.state.shared_limits = shared_buckets(settings)
    app.state.failures = RateLimit(FAILURES_PER_MINUTE, shared=shared, name="failures")
    limit = RateLimit(settings.requests_per_minute, shared=shared)
    app.add_middleware(Guard, hosts=allowed_hosts(settings), limit=limit, answer=answer)


def require_own_schema(scope: Scope) -> None:
    """Raise UnavailableError if this release does not work on the schema any more."""
    watch = getattr(scope["app"].state, "schema", None)  # there since the application started
    if watch is not None and watch.refusal is not None and scope["path"] != _UNLIMITED:
        raise watch.refusal


class Guard:
    """ASGI middleware; sets `scope["state"]["identity"]`.

    Args:
        answer: renders a refusal, and logs errors that are not the caller's fault.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], limit: RateLimit, answer: ErrorHandler) -> None:
        self._app = app
        self._answer = answer
        self._hosts = hosts
        self._limit = limit
        self._noting: set[str | None] = set()  # ids of tokens and sessions whose use is being recorded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer with an error."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("This server only accepts HTTP requests.")
        send = with_headers(send)
        limit = body_limit(scope["path"])
        try:
            require_own_schema(scope)
            require_small_head(scope)
            identity = await self._identified(scope)
            require_small(Headers(scope=scope), limit)
        except OnboardError as error:
            await self._refusal(scope, error)(scope, receive, send)
            return
        scope.setdefault("state", {})["identity"] = identity
        receive = _up_to(limit, receive)
        if identity is None:
            await self._app(scope, receive, send)
            return
        with acting(identity.actor):
            await self._app(scope, receive, send)
        if identity.use_due and (identity.token or identity.session) not in self._noting:
            await self._note_use(scope["app"].state.services, identity)

    def _refusal(self, scope: Scope, error: OnboardError) -> ASGIApp:
        """Return the error; browsers that open or change a page without a session get the sign-in form."""
        safe = scope["method"] in SAFE_METHODS
        wants_page = (safe and scope["path"] == "/") or "text/html" in Headers(scope=scope).get("accept", "")
        if not isinstance(error, SignInError) or not wants_page:
            return self._answer(Request(scope), error)
        settings = scope["app"].state.settings
        look = {"root": settings.root_path, "provider": provider_of(settings)}
        if not safe:
            said = "You are not signed in (any more); nothing was changed."
            return sign_in_page(error.http_status, said, **look)
        query = scope["query_string"].decode("latin-1")
        place = f"{scope['path']}?{query}" if query else scope["path"]
        return sign_in_page(error.http_status, place=place, **look)

    async def _note_use(self, services: Services, identity: Identity) -> None:
        """Record the use of a token. One write per token at a time: if the database is blocked, only one
        thread waits.
        """
        noted = identity.token or identity.session
        self._noting.add(noted)
        try:
            await run_in_threadpool(note_use, services.database, identity)
        finally:
            self._noting.discard(noted)

    async def _identified(self, scope: Scope) -> Identity | None:
        headers = Headers(scope=scope)
        require_host(headers, self._hosts)
        address = caller_address(scope)
        if is_open(scope["path"]):
            if scope["path"] != _UNLIMITED:
                await _take(self._limit, address)
            if scope["method"] not in SAFE_METHODS:
                require_same_site(headers)  # another site must not sign anybody in to an account of its choice
            return None
        if not has_credentials(headers):
            await _take(self._limit, address)
            raise SignInError("token-missing")
        try:
            identity = await identified(scope["app"].state.services, headers, basic=takes_basic(scope["path"]))
        except SignInError:
            # Valid tokens are accepted whatever other clients of the same proxy try: 256 bits cannot be guessed.
            await _take(scope["app"].state.failures, address)
            raise
        if identity.session and scope["method"] not in SAFE_METHODS:
            require_same_site(headers)
        await _take(self._limit, identity.token or identity.name)
        return identity


async def _take(limit: RateLimit, caller: str) -> None:
    if limit.waits:
        await run_in_threadpool(limit.take, caller)
    else:
        limit.take(caller)


async def identified(services: Services, headers: Headers, *, basic: bool = False) -> Identity:
    """Identify the caller by bearer token, else by cookie. Raises SignInError.

    Args:
        basic: whether the token may be the password of Basic authentication.
    """
    given = headers.get("authorization")
    if given is not None:
        return await run_in_threadpool(identify, services.database, _secret_in(given, basic=basic))
    cookie = session_cookie(headers)
    assert cookie is not None  # there are credentials
    return await run_in_threadpool(identify_session, services.database, cookie)


def takes_basic(path: str) -> bool:
    """Whether the token may be sent as the password of Basic authentication, the only kind that Label Studio supports.

    Other paths do not accept it: browsers send a stored password with requests that other sites cause.
    """
    return path.startswith(_LABEL_STUDIO)


def _secret_in(authorization: str, *, basic: bool) -> str:
    """The token of a header: `Bearer TOKEN`, or `Basic …` where that is taken.

    Raises:
        SignInError: there is none.
    """
    kind, _, given = authorization.partition(" ")
    secret = given.strip()
    if kind.lower() == "basic" and basic:
        try:
            secret = base64.b64decode(secret, validate=True).decode().partition(":")[2]
        except ValueError as error:  # of the alphabet, the padding, or UTF-8
            raise SignInError("bearer-token-missing") from error
    elif kind.lower() != "bearer":
        secret = ""
    if not secret:
        raise SignInError("bearer-token-missing")
    return secret


def has_credentials(headers: Headers) -> bool:
    """Return whether a request has credentials."""
    return "authorization" in headers or session_cookie(headers) is not None


def session_cookie(headers: Headers) -> str | None:
    """Return the value of the session cookie; None without one."""
    return cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE)


def caller_address(scope: Scope) -> str:
    """Return the client's address, for IPv6 its /64 network; none for a Unix socket."""
    client = scope.get("client")
    if not client:
        return "local"
    if ":" not in client[0] or not _is_address(client[0]):
        return str(client[0])
    return str(ipaddress.ip_network((client[0].partition("%")[0], _CUSTOMER_BITS), strict=False))


def allowed_hosts(settings: Settings) -> frozenset[str]:
    """Return the accepted host names, in addition to plain addresses."""
    given = settings.allowed_hosts.lower().split()
    return frozenset({"localhost", socket.gethostname().lower(), *given})


def require_host(headers: Headers, hosts: Iterable[str]) -> None:
    """Refuse requests for other host names, which may lead here by DNS rebinding.

    Plain addresses are accepted: a browser only sends one if the page itself came from it.

    Raises:
        HostError: the Host header is missing or not accepted.
    """
    given = headers.getlist("host")
    name = _host_name(given[0]) if len(given) == 1 else None
    if name is None or not (name in hosts or _is_address(name)):
        raise HostError("unknown-host", host=given[0]) if given else HostError("host-header-missing")


def require_same_site(headers: Headers) -> None:
    """Refuse a change that another site made the browser request (CSRF), as browsers send the cookie automatically.

    Browsers send Sec-Fetch-Site over HTTPS and to localhost only. Over plain HTTP, the Origin shows where a form is; if
    it is missing or `null`, the Referer does.

    Raises:
        NotAllowedError: the request comes from another site, or lacks the headers that every browser sends.
    """
    site = headers.get("sec-fetch-site")
    if site is not None:
        if site in ("same-origin", "none"):
            return
        raise NotAllowedError("form-of-other-site")
    origin = headers.get("origin", "null")
    sender = headers.get("referer", "") if origin == "null" else origin
    host = headers.get("host", "")
    if not _is_of_host(sender, host):
        said = (
            f"The request was sent from {sender[:_SHOWN]!r}"
            if sender
            else "The request does not say where it was sent from"
        )
        raise NotAllowedError("form-of-other-origin", said=said, host=host[:_SHOWN])


def body_limit(path: str) -> int:
    """Return the maximum size of a body for this path, in bytes."""
    if path in _UPLOADS or _ROWS.fullmatch(path):
        return MAX_UPLOAD_BYTES
    return OPEN_BODY_BYTES if is_open(path) else BODY_BYTES


def require_small_head(scope: Scope) -> None:
    """Refuse an address and headers of more than `HEAD_BYTES`. Raises HeadTooLargeError."""
    size = len(scope.get("raw_path") or b"") + len(scope["query_string"])
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size > HEAD_BYTES:
        raise HeadTooLargeError("head-too-large", limit=HEAD_BYTES)


def require_small(headers: Headers, limit: int) -> None:
    """Refuse a body with a Content-Length above `limit` bytes. Raises TooLargeError."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise TooLargeError("body-too-large", limit=limit)


def _up_to(limit: int, receive: Receive) -> Receive:
    """Count bodies without a length while they are received."""
    seen = 0

    async def received() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limit:
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The request has more than {limit} bytes.")
        return message

    return received


def _host_name(host: str) -> str | None:
    try:
        split = urlsplit(f"//{host}")
        split.port  # noqa: B018 - it raises if it is not a number
    except ValueError:
        return None
    return None if split.username is not None or split.path or split.query or split.fragment else split.hostname


def _is_of_host(url: str, host: str) -> bool:
    """Return whether a page at this address came from the host; without a port, the scheme's port is used."""
    try:
        page, ours = urlsplit(url), urlsplit(f"//{host}")
        default = _PORTS.get(page.scheme)
        same_port = (page.port or default) == (ours.port or default)
    except ValueError:
        return False
    plain = default is not None and page.username is None and bool(page.hostname)
    return plain and same_port and page.hostname == ours.hostname


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
