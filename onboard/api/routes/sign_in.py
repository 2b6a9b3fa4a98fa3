"""Sign a browser in, by a token or by the link that the start printed, and out again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from onboard.api.access import SESSION_COOKIE
from onboard.api.deps import OpenServices
from onboard.api.guarding import caller_address, session_cookie
from onboard.api.heads import asks_for_head
from onboard.api.limits import RateLimit
from onboard.api.sign_in_page import MOST_LETTERS, own_place, sign_in_page
from onboard.errors import SignInError
from onboard.operations.access import SESSION_SECONDS, sign_in, sign_in_by_code, sign_out

router = APIRouter(include_in_schema=False)
_AFTERWARDS: Final = 303  # See Other: redirect after a POST
_MOST_LETTERS: Final = 256


@router.get("/login")
def show_form(
    request: Request, services: OpenServices, code: Annotated[str | None, Query(max_length=_MOST_LETTERS)] = None
) -> Response:
    """Show the form, or begin a session for the code of a link."""
    if code is None or asks_for_head(request):  # a HEAD does not use up a code
        return sign_in_page(root=request.app.state.settings.root_path)
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
    except SignInError as error:
        failures.take(address)
        return sign_in_page(error.http_status, error.message, place, request.app.state.settings.root_path)
    answer = RedirectResponse(place, _AFTERWARDS)
    answer.set_cookie(
        SESSION_COOKIE,
        cookie,
        max_age=int(SESSION_SECONDS),
        path=_cookie_path(request),
        httponly=True,
        secure=request.url.scheme == "https",
        samesite="lax",  # links from other sites may open pages; changes must state their origin
    )
    return answer


def _cookie_path(request: Request) -> str:
    """Return the cookie's path: with a path prefix, other services of the host do not receive it."""
    return request.app.state.settings.root_path or "/"
