"""Errors as application/problem+json (RFC 9457), each with a stable `code` and a remedy."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from onboard.api.headers import HEADERS
from onboard.api.remedies import data_over_http, in_fields, told_over_http
from onboard.errors import (
    InputError,
    InternalError,
    MethodNotAllowedError,
    NotFoundError,
    OnboardError,
    type_uri,
)

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER_SECONDS: Final = 2
_CODES: Final = {401: "sign_in", 403: "not_allowed", 413: "too_large"}  # of errors without a route
_logger = logging.getLogger(__name__)


def answer(request: Request, error: Exception) -> Response:
    """Return any error as a problem; log it unless it is the caller's fault."""
    if isinstance(error, OnboardError):
        log(request.method, request.url.path, error)
        return of_error(error)
    if isinstance(error, RequestValidationError):
        return of_error(_of_validation(error))
    return _of_http(request, error) if isinstance(error, HTTPException) else _of_a_fault(request, error)


def _answer(document: Mapping[str, Any], headers: Mapping[str, str] | None) -> Response:
    # ASCII, because submitted content may contain characters that UTF-8 cannot encode
    return Response(json.dumps(document, default=str), document["status"], headers, MEDIA_TYPE)


def _document(
    status: int, type_: str, code: str, detail: str, remedy: str, data: Mapping[str, Any] | None
) -> dict[str, Any]:
    return {
        **(data or {}),
        "type": type_uri(type_),
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
        "remedy": remedy,
    }


def document_of(error: OnboardError) -> dict[str, Any]:
    """Return the problem of an error within a response, such as one row of many."""
    plain: dict[str, Any] = json.loads(json.dumps(_told(error.outside), default=str))
    return plain


def _told(error: OnboardError) -> dict[str, Any]:
    remedies, detail = told_over_http(error.remedy), in_fields(error.message)
    data = {**data_over_http(error.data), **remedies}
    if detail != error.message:
        data["message"] = error.message  # for the command line
    return _document(error.http_status, error.type, error.code, detail, remedies["remedy"], data)


def of_error(error: OnboardError, headers: Mapping[str, str] | None = None) -> Response:
    """Return the problem of an onboard error."""
    error = error.outside
    sent = dict(headers or {})
    if error.http_status == HTTPStatus.UNAUTHORIZED:
        sent["WWW-Authenticate"] = "Bearer"
    if error.retryable:
        sent["Retry-After"] = str(error.data.get("retry_after_seconds", RETRY_AFTER_SECONDS))
    return _answer(_told(error), sent)


def log(method: str, path: str, error: OnboardError) -> None:
    """Log an error unless it is the caller's fault, with details that callers do not see."""
    if error.outside.http_status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _logger.warning("%s %s: %s", method, path, error.message)


_MALFORMED: Final = "json_invalid"


def _of_validation(error: RequestValidationError) -> InputError:
    findings = [_finding(fault) for fault in error.errors()]
    first = findings[0]
    return InputError(
        "request-invalid",
        place=first["field"] or first["in"],
        reason=first["message"],
        field=first["field"],
        errors=findings,
    )


def _finding(error: Mapping[str, Any]) -> dict[str, str]:
    location: Sequence[Any] = error["loc"]
    if error["type"] == _MALFORMED:  # its location is a character, not a field
        reason = (error.get("ctx") or {}).get("error", error["msg"])
        place = f" at character {location[-1]}" if len(location) > 1 else ""
        message = f"it is not JSON{place}: {str(reason).rstrip('.')}"
        return {"in": str(location[0]), "field": "", "message": message, "kind": _MALFORMED}
    return {
        "in": str(location[0]),
        "field": ".".join(map(str, location[1:])),
        "message": str(error["msg"]).rstrip("."),
        "kind": str(error["type"]),
    }


def error_of_http(request: Request, error: HTTPException) -> OnboardError:
    """Return the error of a request that matched no route."""
    if error.status_code == HTTPStatus.NOT_FOUND:
        return NotFoundError("unknown-path", path=request.url.path)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return MethodNotAllowedError("method-not-allowed", method=request.method, path=request.url.path)
    return InputError("request-refused", reason=str(error.detail))


def fault() -> InternalError:
    """Return the error that callers see for a fault of the service."""
    return InternalError("service-failed")


def _of_http(request: Request, error: HTTPException) -> Response:
    ours, status = error_of_http(request, error), error.status_code
    if ours.http_status == status:
        return of_error(ours, error.headers)
    code = _CODES.get(status, "input" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "internal")
    return _answer(_document(status, ours.type, code, ours.message, ours.remedy, ours.data), error.headers)


def _of_a_fault(request: Request, error: Exception) -> Response:
    """Answer an internal error; details are only in the server's log."""
    _logger.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return of_error(fault(), HEADERS)  # this response bypasses all middleware
