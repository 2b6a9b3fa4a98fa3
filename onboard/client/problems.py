"""Convert problem documents (problem+json) of a service to the errors that the command would raise locally."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import httpx

from onboard.client.json_object import JsonObject
from onboard.domain.job_remedies import reworded_event, reworded_job
from onboard.domain.untrusted_json import parse_json
from onboard.errors import (
    ConflictError,
    InputError,
    NotAllowedError,
    NotFoundError,
    OnboardError,
    UnavailableError,
    type_in,
)

_OF_HTTP: Final = ("type", "title", "status", "detail", "instance", "code", "message", "remedy", "command")
_BY_STATUS: Final[dict[int, type[OnboardError]]] = {
    **dict.fromkeys((400, 405, 413, 415, 422, 428), InputError),
    **dict.fromkeys((401, 403), NotAllowedError),
    **dict.fromkeys((404, 410), NotFoundError),
    **dict.fromkeys((409, 412), ConflictError),
    **dict.fromkeys((429, 502, 503, 504), UnavailableError),
}


def problem_of(response: httpx.Response) -> OnboardError:
    """Return the error of a refusal with a body that was already read.

    Unknown codes, and bodies of proxies, fall back to the error of the status.
    """
    document = _document(response)
    status = response.status_code
    detail = document.get("message") or document.get("detail") or document.get("title") or _redirection(response)
    message = str(detail or f"{response.request.url.host} answered {status} {response.reason_phrase}.")
    return _error_of(document, status, message)


def error_of(document: JsonObject) -> OnboardError:
    """Return the error of a problem within a response. Raises AnswerError."""
    return _error_of(document, document.read("status", int), document.read("detail", str))


def _error_of(document: Mapping[str, Any], status: int, message: str) -> OnboardError:
    kind = _named(str(document.get("code")), status) or _kind_of(status)
    remedy = _remedy_of(document)
    if not remedy or status == httpx.codes.UNAUTHORIZED:  # the service's remedy is about HTTP headers
        remedy = _remedy(status)
    data = {key: value for key, value in document.items() if key not in _OF_HTTP}
    error = kind.reported(type_in(document.get("type")), message, remedy, data)
    if isinstance(problems := document.get("problems"), list):
        error.data["problems"] = in_commands(problems)
    return error


def _remedy_of(document: Mapping[str, Any]) -> str:
    """Return the remedy as a command if there is one, rather than as an HTTP request."""
    return str(document.get("command") or document.get("remedy") or "")


def in_commands(findings: Sequence[Any]) -> list[dict[str, Any]]:
    """Return problems or warnings of a dataset with their remedies as commands."""
    return [_in_commands(finding) for finding in findings if isinstance(finding, dict)]


def job_in_commands(job: JsonObject) -> JsonObject:
    """Return a job's document with its remedies as commands."""
    return JsonObject.of(reworded_job(job, _in_commands), job.place)


def event_in_commands(event: JsonObject) -> JsonObject:
    """Return one line of a job's log with the remedy of its error as a command."""
    return JsonObject.of(reworded_event(event, _in_commands), event.place)


def _in_commands(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part with its remedy, and those of its problems, as commands."""
    original = {key: value for key, value in part.items() if key not in ("command", "detail")}
    if "remedy" in part:
        original["remedy"] = _remedy_of(part)
    if isinstance(problems := part.get("problems"), list):
        original["problems"] = in_commands(problems)
    return original


def is_certificate_error(error: httpx.RequestError) -> bool:
    """Return whether the service's certificate was rejected, so that a retry does not help."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def unreachable(url: httpx.URL, error: httpx.RequestError) -> UnavailableError:
    """Return the error for a missing response: refused, interrupted, timed out, or an untrusted certificate."""
    late = isinstance(error, httpx.TimeoutException)
    why = "it did not answer in time" if late else str(error) or type(error).__name__
    place = f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"
    if is_certificate_error(error):
        return UnavailableError("certificate-not-trusted", url=place, reason=why)
    return UnavailableError("service-unreachable", url=place, reason=why)


def _document(response: httpx.Response) -> dict[str, Any]:
    if "json" not in response.headers.get("content-type", ""):
        return {}
    try:
        document = parse_json(response.content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def _redirection(response: httpx.Response) -> str | None:
    """Return the target of a redirection, which is not followed because the token is for this service only."""
    if response.next_request is None:
        return None
    target = response.next_request.url
    return f"{response.request.url.host} redirects to {target.scheme}://{target.host}. The token was not sent there."


def _kind_of(status: int) -> type[OnboardError]:
    redirected = 300 <= status < 400  # something else is at that URL
    return UnavailableError if redirected else _BY_STATUS.get(status, OnboardError)


def _remedy(status: int) -> str:
    if status == 401:
        return "Set ONBOARD_TOKEN to a valid token; create one on a machine of the service: onboard token create"
    if status == 429:
        return "Send fewer requests."
    return "Check ONBOARD_API_URL." if 300 <= status < 400 else ""


def _named(code: str, status: int) -> type[OnboardError] | None:
    """Return the class of a code; if several share it, the one with this status."""
    kinds = [kind for kind in _kinds(OnboardError) if kind.code == code]
    return next((kind for kind in kinds if kind.http_status == status), kinds[0] if kinds else None)


def _kinds(root: type[OnboardError]) -> Iterator[type[OnboardError]]:
    for kind in root.__subclasses__():
        yield kind
        yield from _kinds(kind)
