"""Errors as pages with remedies for browsers; other clients get problem documents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response

from onboard.api import problems
from onboard.api.pages.frame import rendered
from onboard.api.remedies import in_fields
from onboard.errors import OnboardError

_PART: Final = re.compile("[a-z-]{1,32}")
_OF_PROGRAMS: Final = "/v1/"  # clients here read JSON even if they accept HTML (as Java's client does)
_OWN_HEADERS: Final = ("content-type", "content-length")
_MAY_BE: Final = {"bool_parsing": "true or false"}  # if the validation error does not list them


@dataclass(frozen=True, slots=True)
class Shown:
    """The content of an error page.

    Args:
        problems: invalid rows and fields, each with a message and a remedy.
    """

    message: str
    remedy: str
    problems: Sequence[Any] = ()


def install(app: FastAPI) -> None:
    """Answer every error of the application as a page or a problem document."""
    for kind in (OnboardError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def answer(request: Request, error: Exception) -> Response:
    """Return the error as a page for browsers, otherwise as a problem document."""
    problem = problems.answer(request, error)
    if not is_for_people(request):
        return problem
    target = request.headers.get("hx-target", "")  # the part of the page that shows it
    page = rendered(
        request,
        "error.html",
        shown=_shown(request, error),
        status=problem.status_code,
        target=target if _PART.fullmatch(target) else "",
    )
    headers = {name: value for name, value in problem.headers.items() if name not in _OWN_HEADERS}
    return HTMLResponse(page, problem.status_code, headers)


def is_for_people(request: Request) -> bool:
    """Return whether a browser requests a page or a part of one."""
    if request.url.path.endswith(".json") or request.url.path.startswith(_OF_PROGRAMS):
        return False
    return "text/html" in request.headers.get("accept", "") or "hx-request" in request.headers


def _shown(request: Request, error: Exception) -> Shown:
    if isinstance(error, OnboardError):
        outside = error.outside
        listed = outside.data.get("problems")
        message, remedy = in_fields(outside.message), in_fields(outside.remedy)
        return Shown(message, remedy, listed if isinstance(listed, list) else ())
    if isinstance(error, RequestValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        missing = error.status_code == HTTPStatus.NOT_FOUND
        remedy = (
            "Check the address, or start from the overview." if missing else "Go back and use the form on the page."
        )
        return Shown(problems.error_of_http(request, error).message, remedy)
    fault = problems.fault()
    return Shown(fault.message, fault.remedy)


def _of_validation(error: RequestValidationError) -> Shown:
    """Describe the first invalid field of an address or a form, with allowed values."""
    (first, *_) = error.errors()
    named = first["loc"][1:] if first["type"] != "json_invalid" else ()  # its location is a character
    field = ".".join(map(str, named)) or str(first["loc"][0])
    may_be = (first.get("ctx") or {}).get("expected") or _MAY_BE.get(first["type"])
    remedy = f"It may be {may_be}." if may_be else "Correct the value in the address or in the form."
    return Shown(f"{field}: {str(first['msg']).rstrip('.')}.", remedy)
