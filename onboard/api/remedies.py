"""Remedies for HTTP clients: commands become requests, options become form fields.

Errors are written for the command line. HTTP clients have no commands; for `onboard` itself, the original is sent as
`command`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onboard.domain.addition import Addition
from onboard.domain.job_remedies import reworded_event, reworded_job
from onboard.domain.submission import Submission, fields_of

_REFERENCE: Final = r"(?P<task>[\w-]+)@(?P<ref>[\w-]+)"
_NAME: Final = r"(?P<name>[\w-]+)"
_REQUESTS: Final = [
    (re.compile(command), request)
    for command, request in (
        (rf"onboard jobs list --task {_NAME}", r"GET /v1/jobs?task=\g<name>"),
        (r"onboard (?P<what>jobs|tasks) list", r"GET /v1/\g<what>"),
        (r"onboard (?P<what>base|hypernetwork|token) list", r"GET /v1/\g<what>s"),
        (r"onboard workers list", "GET /v1/workers"),
        (rf"onboard versions {_NAME}", r"GET /v1/tasks/\g<name>/versions"),
        (rf"onboard tasks show {_NAME}", r"GET /v1/tasks/\g<name>"),
        (rf"onboard jobs show {_NAME}(?: --json)?", r"GET /v1/jobs/\g<name>"),
        (rf"onboard jobs logs {_NAME}", r"GET /v1/jobs/\g<name>/logs"),
        (rf"onboard jobs retry {_NAME} --time-limit SECONDS",
         r'POST /v1/jobs/\g<name>/retry with {"time_limit": SECONDS}'),
        (rf"onboard jobs retry {_NAME}", r"POST /v1/jobs/\g<name>/retry"),
        (rf"onboard queue resume {_NAME}", r'POST /v1/queue/resume with {"queue": "\g<name>"}'),
        (rf"onboard compare {_REFERENCE} [\w-]+@(?P<later>[\w-]+)",
         r"GET /v1/tasks/\g<task>/compare?a=\g<ref>&b=\g<later>"),
        (rf"onboard promote {_REFERENCE} --alias {_NAME}",
         r'PUT /v1/tasks/\g<task>/aliases/\g<name> with {"version": N}'),
        (rf"onboard rollback (?P<task>[\w-]+) --alias {_NAME}", r"POST /v1/tasks/\g<task>/aliases/\g<name>/rollback"),
        (rf"onboard token create NAME --scope {_NAME}", r'POST /v1/tokens with {"name": NAME, "scopes": ["\g<name>"]}'),
        (r"onboard submit(?: --dataset)? FILE", "POST /v1/jobs"),
        (r"onboard add (?P<task>[\w-]+) FILE --replace", r"POST /v1/tasks/\g<task>/rows with replace=true"),
        (r"onboard add (?P<task>[\w-]+) FILE", r"POST /v1/tasks/\g<task>/rows"),
        (rf"onboard labels {_NAME}$", r"GET /v1/tasks/\g<name>/labels"),
        (r"onboard check FILE(?:\.parquet)?", "POST /v1/check"),
    )
]  # fmt: skip
_FIELDS: Final = {
    field.flag: field.name
    for declaration in (Addition, Submission) for field in fields_of(declaration) if field.option.form is not None
}  # fmt: skip
_OPTION: Final = re.compile(
    r"onboard [a-z][^.,;:]*"  # keep commands without a counterpart
    r"|(?P<flag>--[a-z][a-z-]*)"
    r"(?: (?P<value>[A-Z][A-Z0-9,…]*\b|\d+|auto|random|drop|refuse|classification|regression|multilabel|text\b"
    r"|exhaustive|always|never"
    r"|(?<=--task )[a-z0-9][a-z0-9_-]*(?![\w,])|(?<=--metric )\w+|(?<=--method )[\w+]+))?"
)


def in_requests(remedy: str) -> str:
    """Replace commands and options in a remedy by requests and fields, if they have a counterpart."""
    for command, request in _REQUESTS:
        remedy = command.sub(request, remedy)
    return in_fields(remedy)


def in_fields(text: str) -> str:
    """Replace options by fields of a form, for pages and messages, and keep commands."""
    return _OPTION.sub(_field, text)


def told_over_http(remedy: str) -> dict[str, str]:
    """Return the members of a problem: `remedy`, and the original as `command` if it differs."""
    translated = in_requests(remedy)
    return {"remedy": translated} if translated == remedy else {"remedy": translated, "command": remedy}


def data_over_http(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the facts of an error, including the remedies of a dataset's problems."""
    problems = data.get("problems")
    return {**data, "problems": findings_over_http(problems)} if isinstance(problems, list) else dict(data)


def findings_over_http(findings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert the messages and remedies of a dataset's problems or warnings."""
    return [_told(finding) for finding in findings]


def job_over_http(job: Mapping[str, Any]) -> dict[str, Any]:
    """Convert messages and remedies in a job's document, brief or full: error, wait, events and warnings."""
    return reworded_job(job, _told)


def event_over_http(event: Mapping[str, Any]) -> dict[str, Any]:
    """Convert messages and remedies in an event of a job's log."""
    return reworded_event(event, _told)


def _told(part: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a part with a message and a remedy; `detail` is the message in fields, if it differs."""
    message = part.get("message") or ""
    detail = in_fields(message)
    remedies = told_over_http(part["remedy"]) if part.get("remedy") else {}
    return {**data_over_http(part), **remedies, **({} if detail == message else {"detail": detail})}


def _field(option: re.Match[str]) -> str:
    if option["flag"] == "--key":
        return "Idempotency-Key"
    if option["flag"] is None:
        return option[0]
    name = _FIELDS.get(option["flag"])
    if name is None:
        return option[0]
    return name if option["value"] is None else f"{name}={option['value']}"
