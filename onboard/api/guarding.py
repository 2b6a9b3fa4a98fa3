"""The guard in front of every route: who is asked, who asks, how often; and the headers that browsers obey.

It runs before any byte of a body is read: nobody without a token can make the service store something.
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
from onboard.api.sign_in_page import sign_in_page
from onboard.api.uploads import MAX_UPLOAD_BYTES
from onboard.domain.access import Identity, acting
from onboard.errors import HeadTooLargeError, HostError, NotAllowedError, OnboardError, SignInError, TooLargeError
from onboard.operations.access import identify, identify_session, note_use
from onboard.registry.services import Services
from onboard.settings import Settings

BODY_BYTES: Final = 8 * 2**20  # of a request, but for those that bring files
OPEN_BODY_BYTES: Final = 16 * 2**10  # of one that nobody has signed
HEAD_BYTES: Final = 16 * 2**10  # of address and headers together
_UNLIMITED: Final = "/healthz"  # costs nothing, and whoever watches must not be turned away by what others ask
_UPLOADS: Final = ("/v1/jobs", "/v1/check", "/submit", "/submit/check")  # these count what they store themselves, too
_ROWS: Final = re.compile("(/v1)?/tasks/[^/]+/rows")  # likewise
_LABEL_STUDIO: Final = "/v1/label-studio/"
_CUSTOMER_BITS: Final = 64
FAILURES_PER_MINUTE: Final = 60  # wrong tokens and codes of one address
_PORTS: Final = {"http": 80, "https": 443}
_SHOWN: Final = 200  # characters of a header in a message
SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
Answer = Callable[[Request, Exception], Response]


def install(app: FastAPI, settings: Settings, answer: Answer) -> None:
    """Put the guard in front of the application's routes.

    Args:
        answer: what a refusal looks like to who is refused.
    """
    app.state.failures = RateLimit(FAILURES_PER_MINUTE)
    limit = RateLimit(settings.requests_per_minute)
    app.add_middleware(Guard, hosts=allowed_hosts(settings), limit=limit, answer=answer)


class Guard:
    """ASGI middleware; `scope["state"]["identity"]` is who asks.

    Args:
        hosts: names by which we may be asked.
        limit: of the requests of one caller.
        answer: what a refusal looks like; it logs what is not the caller's fault.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], limit: RateLimit, answer: Answer) -> None:
        self._app = app
        self._answer = answer
        self._hosts = hosts
        self._limit = limit
        self._noting: set[str | None] = set()  # ids of the tokens and sessions whose use is being noted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer with what is wrong."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError("Only HTTP is spoken here.")
        send = with_headers(send)
        limit = body_limit(scope["path"])
        try:
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
        """Browsers that open or change a page without a session get the sign-in form."""
        safe = scope["method"] in SAFE_METHODS
        wants_page = (safe and scope["path"] == "/") or "text/html" in Headers(scope=scope).get("accept", "")
        if not isinstance(error, SignInError) or not wants_page:
            return self._answer(Request(scope), error)
        root = scope["app"].state.settings.root_path
        if not safe:
            said = "Nobody is signed in (any more): nothing was changed."
            return sign_in_page(error.http_status, said, root=root)
        query = scope["query_string"].decode("latin-1")
        place = f"{scope['path']}?{query}" if query else scope["path"]
        return sign_in_page(error.http_status, place=place, root=root)

    async def _note_use(self, services: Services, identity: Identity) -> None:
        """One at a time of each token: while the database does not take it, only one thread waits for that."""
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
                self._limit.take(address)
            if scope["method"] not in SAFE_METHODS:
                require_same_site(headers)  # nobody is signed in by another site to an account of its choice
            return None
        if not has_credentials(headers):
            self._limit.take(address)
            raise SignInError("token-missing")
        try:
            identity = await identified(scope["app"].state.services, headers, basic=takes_basic(scope["path"]))
        except SignInError:
            # A good token is let in whatever others behind the same proxy try: none of 256 bits is found by trying.
            scope["app"].state.failures.take(address)
            raise
        if identity.session and scope["method"] not in SAFE_METHODS:
            require_same_site(headers)
        self._limit.take(identity.token or identity.name)
        return identity


async def identified(services: Services, headers: Headers, *, basic: bool = False) -> Identity:
    """Who asks: by the bearer token if there is one, else by the cookie. Raises SignInError.

    Args:
        services: of the service.
        headers: of the request.
        basic: whether the token may be the password of Basic authentication.
    """
    given = headers.get("authorization")
    if given is not None:
        return await run_in_threadpool(identify, services.database, _secret_in(given, basic=basic))
    cookie = session_cookie(headers)
    assert cookie is not None  # there are credentials
    return await run_in_threadpool(identify_session, services.database, cookie)


def takes_basic(path: str) -> bool:
    """Whether the token may be a password: only where Label Studio asks, which knows nothing else.

    Elsewhere a browser that remembers a password would send it along with what other sites make it ask for.
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
    """Whether a request tries to say who asks."""
    return "authorization" in headers or session_cookie(headers) is not None


def session_cookie(headers: Headers) -> str | None:
    """What the session's cookie says; None without one."""
    return cookie_parser(headers.get("cookie", "")).get(SESSION_COOKIE)


def caller_address(scope: Scope) -> str:
    """The address of whoever is connected, of IPv6 the network that one customer has; a socket file has none."""
    client = scope.get("client")
    if not client:
        return "local"
    if ":" not in client[0] or not _is_address(client[0]):
        return str(client[0])
    return str(ipaddress.ip_network((client[0].partition("%")[0], _CUSTOMER_BITS), strict=False))


def allowed_hosts(settings: Settings) -> frozenset[str]:
    """Names by which we may be asked, beside plain addresses."""
    given = settings.allowed_hosts.lower().split()
    return frozenset({"localhost", socket.gethostname().lower(), *given})


def require_host(headers: Headers, hosts: Iterable[str]) -> None:
    """Refuse a request for a name that is not ours: another site's name may lead here by DNS (rebinding).

    Plain addresses are ours: a browser says an address only where the page itself came from it.

    Raises:
        HostError: the Host header is missing, or names somebody else.
    """
    given = headers.getlist("host")
    name = _host_name(given[0]) if len(given) == 1 else None
    if name is None or not (name in hosts or _is_address(name)):
        raise HostError("unknown-host", host=given[0]) if given else HostError("host-header-missing")


def require_same_site(headers: Headers) -> None:
    """Refuse a change that another site made the browser ask for (CSRF): the cookie comes along by itself.

    Browsers send Sec-Fetch-Site over HTTPS and to this machine only; over plain HTTP the Origin says where a form
    stands, and of browsers that send none with a form, or `null`, the Referer.

    Raises:
        NotAllowedError: the request comes from elsewhere, or does not say where from, as every browser does.
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
        said = f"It was sent from {sender[:_SHOWN]!r}" if sender else "It does not say where it was sent from"
        raise NotAllowedError("form-of-other-origin", said=said, host=host[:_SHOWN])


def body_limit(path: str) -> int:
    """How many bytes the body of a request to this path may have."""
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
    """Refuse a body that says that it is larger than `limit` bytes. Raises TooLargeError."""
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > limit:
        raise TooLargeError("body-too-large", limit=limit)


def _up_to(limit: int, receive: Receive) -> Receive:
    """Bodies without a length are counted as they come."""
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
        split.port  # noqa: B018 - it raises where it is no number
    except ValueError:
        return None
    return None if split.username is not None or split.path or split.query or split.fragment else split.hostname


def _is_of_host(url: str, host: str) -> bool:
    """Whether a page at this address came from the host; where the host names no port, from the scheme's port."""
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
