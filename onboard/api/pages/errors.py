"""Errors as pages for people, with what mends them; programs get problems."""

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
from onboard.errors import OnboardError

_PART: Final = re.compile("[a-z-]{1,32}")
_OF_PROGRAMS: Final = "/v1/"  # what is asked for here may say that it takes HTML (Java's client does), and reads JSON
_OWN_HEADERS: Final = ("content-type", "content-length")
_MAY_BE: Final = {"bool_parsing": "true or false"}  # where the check does not say it


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page says of an error.

    Args:
        problems: rows and fields that are wrong, each with a message and a remedy.
    """

    message: str
    remedy: str
    problems: Sequence[Any] = ()


def install(app: FastAPI) -> None:
    """Let every error of the application be answered, as a page or as a problem."""
    for kind in (OnboardError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answer)


def answer(request: Request, error: Exception) -> Response:
    """The error as a page to who looks at pages, as a problem to everybody else."""
    problem = problems.answer(request, error)
    if not is_for_people(request):
        return problem
    target = request.headers.get("hx-target", "")  # the part of the page that it is shown in
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
    """Whether a browser asks for a page, or for a part of one."""
    if request.url.path.endswith(".json") or request.url.path.startswith(_OF_PROGRAMS):
        return False
    return "text/html" in request.headers.get("accept", "") or "hx-request" in request.headers


def _shown(request: Request, error: Exception) -> Shown:
    if isinstance(error, OnboardError):
        outside = error.outside
        listed = outside.data.get("problems")
        return Shown(outside.message, outside.remedy, listed if isinstance(listed, list) else ())
    if isinstance(error, RequestValidationError):
        return _of_validation(error)
    if isinstance(error, HTTPException):
        missing = error.status_code == HTTPStatus.NOT_FOUND
        remedy = "Look at the address, or begin at the overview." if missing else "Go back, and use the form of a page."
        return Shown(problems.error_of_http(request, error).message, remedy)
    fault = problems.fault()
    return Shown(fault.message, fault.remedy)


def _of_validation(error: RequestValidationError) -> Shown:
    """The first thing that is wrong with an address or a form, with what it may be."""
    (first, *_) = error.errors()
    named = first["loc"][1:] if first["type"] != "json_invalid" else ()  # whose location is a character
    field = ".".join(map(str, named)) or str(first["loc"][0])
    may_be = (first.get("ctx") or {}).get("expected") or _MAY_BE.get(first["type"])
    remedy = f"It may be {may_be}." if may_be else "Correct it in the address or in the form."
    return Shown(f"{field}: {str(first['msg']).rstrip('.')}.", remedy)
