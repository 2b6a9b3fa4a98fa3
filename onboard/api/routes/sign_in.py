"""Sign a browser in, by a token or by the link that the start printed, and out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from onboard.api.access import OIDC, SESSION_COOKIE
from onboard.api.deps import OpenServices
from onboard.api.guarding import caller_address, session_cookie
from onboard.api.heads import asks_for_head
from onboard.api.limits import RateLimit
from onboard.api.sign_in_page import MOST_LETTERS, own_place, provider_of, sign_in_page
from onboard.domain.open_id import CALLBACK
from onboard.errors import NotAllowedError, NotFoundError, SignInError
from onboard.operations.access import SESSION_SECONDS, sign_in, sign_in_by_code, sign_in_person, sign_out
from onboard.operations.open_id import BEGUN_SECONDS, Begun, OpenIdProvider

router = APIRouter(include_in_schema=False)
_BEGUN_COOKIE: Final = "onboard_oidc"  # what a browser brings back from the OpenID provider
_AFTERWARDS: Final = 303  # See Other: redirect after a POST
_MOST_LETTERS: Final = 256


@router.get("/login")
def show_form(
    request: Request, services: OpenServices, code: Annotated[str | None, Query(max_length=_MOST_LETTERS)] = None
) -> Response:
    """Show the form, or begin a session for the code of a link."""
    if code is None or asks_for_head(request):  # a HEAD does not use up a code
        return _form(request)
    return _signed_in(request, lambda: sign_in_by_code(services.database, code))


@router.post("/login")
def sign_in_by_form(
    request: Request,
    services: OpenServices,
    token: Annotated[str, Form(max_length=_MOST_LETTERS)],
    place: Annotated[str, Form(max_length=MOST_LETTERS)] = "/",
) -> Response:
    """Begin a session with a token; then redirect to the requested page."""
    return _signed_in(request, lambda: sign_in(services.database, token.strip()), own_place(place))


@router.get(OIDC)
def begin_at_provider(request: Request, place: Annotated[str, Query(max_length=MOST_LETTERS)] = "/") -> Response:
    """Send the browser to the OpenID provider. Raises NotFoundError: there is none; UnavailableError."""
    provider = _provider(request)
    if asks_for_head(request):
        return _form(request)
    address, begun = provider.begin(own_place(place))
    answer = RedirectResponse(address, _AFTERWARDS)
    answer.set_cookie(_BEGUN_COOKIE, begun.packed(), max_age=int(BEGUN_SECONDS), **_cookie_terms(request))
    return answer


@router.get(CALLBACK)
def finish_at_provider(request: Request, services: OpenServices) -> Response:
    """Begin a session for whoever the OpenID provider signed in. Raises NotFoundError, UnavailableError."""
    provider = _provider(request)
    if asks_for_head(request):  # it does not use up the code
        return _form(request)
    begun = Begun.unpacked(request.cookies.get(_BEGUN_COOKIE, ""))
    answered = dict(request.query_params)
    answer = _signed_in(
        request,
        lambda: sign_in_person(services.database, provider.finish(begun, answered)),
        own_place(begun.place) if begun else "/",
    )
    answer.delete_cookie(_BEGUN_COOKIE, **_cookie_terms(request))
    return answer


@router.post("/logout")
def sign_browser_out(request: Request, services: OpenServices) -> Response:
    """End the session of this browser."""
    cookie = session_cookie(request.headers)
    if cookie is not None:
        sign_out(services.database, cookie)
    answer = RedirectResponse("/login", _AFTERWARDS)
    answer.delete_cookie(SESSION_COOKIE, path=_cookie_path(request), httponly=True, samesite="lax")
    return answer


def _signed_in(request: Request, begin: Callable[[], str], place: str = "/") -> Response:
    """Redirect with the cookie of a new session, or show the form again. Raises RateLimitError: too many attempts
    failed.
    """
    failures: RateLimit = request.app.state.failures
    address = caller_address(request.scope)
    failures.require(address)
    try:
        cookie = begin()
    except (SignInError, NotAllowedError) as error:
        failures.take(address)
        return _form(request, error.http_status, error.message, place)
    answer = RedirectResponse(place, _AFTERWARDS)
    answer.set_cookie(
        SESSION_COOKIE,
        cookie,
        max_age=int(SESSION_SECONDS),
        **_cookie_terms(request),
    )
    return answer


def _form(request: Request, status: int = 200, trouble: str = "", place: str = "/") -> Response:
    settings = request.app.state.settings
    return sign_in_page(status, trouble, place, settings.root_path, provider_of(settings))


def _provider(request: Request) -> OpenIdProvider:
    provider: OpenIdProvider | None = request.app.state.open_id
    if provider is None:
        raise NotFoundError("oidc-not-configured")
    return provider


def _cookie_terms(request: Request) -> dict[str, Any]:
    """Return how cookies are set: links from other sites may open pages; changes must state their origin."""
    secure = request.url.scheme == "https"
    return {"path": _cookie_path(request), "httponly": True, "secure": secure, "samesite": "lax"}


def _cookie_path(request: Request) -> str:
    """Return the cookie's path: with a path prefix, other services of the host do not receive it."""
    return request.app.state.settings.root_path or "/"
