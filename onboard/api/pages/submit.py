"""Submit a dataset: check it first, then queue it and show its job."""

from __future__ import annotations

import secrets
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import ClientLeft, OpenServices
from onboard.api.intake import Intake
from onboard.api.pages.frame import page, to
from onboard.api.quotas import SubmitterWithRoom, quota_document
from onboard.api.receiving import TypedJob
from onboard.domain.access import Identity, Scope
from onboard.domain.submission import Field, Submission, fields_of
from onboard.jobs.pace import pace_of
from onboard.jobs.waking import start_worker
from onboard.report.warned import dataset_warnings

_FIRST: Final = ("dataset", "task", "labels", "label_description")  # the others are rarely changed
_MOST_LETTERS: Final = 200
_SUBMIT: Final = [Depends(requires(Scope.SUBMIT))]
Key = Annotated[str, Query(min_length=1, max_length=_MOST_LETTERS)]

router = APIRouter(include_in_schema=False)


@router.get("/submit", dependencies=_SUBMIT)
@router.get("/submit.json", dependencies=_SUBMIT)
def show_form(
    request: Request,
    services: OpenServices,
    identity: Annotated[Identity, Depends(requires(Scope.SUBMIT))],
    task: Annotated[str, Query(max_length=_MOST_LETTERS)] = "",
) -> Response:
    """Show the form of a submission, generated from its declaration, and what is left of the caller's quota."""
    shown = [field for field in fields_of(Submission) if field.option.form is not None and not field.option.instead]
    quota = quota_document(services, identity.name)
    document = {"fields": [_described(field) for field in shown], "quota": quota}
    return page(request, "submit.html", document, first=_FIRST, task=task, key=secrets.token_hex(12))


@router.post("/submit/check", dependencies=_SUBMIT)
def check_dataset(received: TypedJob, services: OpenServices, request: Request, left: ClientLeft) -> Response:
    """Check a dataset and estimate its job's duration; nothing is queued."""
    intake: Intake = request.app.state.intake
    submission = received.submission()
    pace = pace_of(services.database, submission.queue)
    report = intake.check(submission, received.upload.content_bytes, left, pace)
    return page(request, "checked.html", report, warnings=dataset_warnings(report))


@router.post("/submit")
def submit_job(
    identity: SubmitterWithRoom,
    received: TypedJob,
    services: OpenServices,
    request: Request,
    left: ClientLeft,
    key: Key,
) -> Response:
    """Submit a dataset; sending the same form twice creates one job."""
    intake: Intake = request.app.state.intake
    job, _ = intake.submit(received.submission(key=key), identity.name, received.upload.content_bytes, left)
    start_worker(services, job.queue)
    request.app.state.overview.forget()
    place = f"/jobs/{job.id}"
    return Response(headers={"HX-Redirect": place}) if "hx-request" in request.headers else to(place)


def _described(field: Field) -> dict[str, Any]:
    default = field.default if isinstance(field.default, (str, int, float)) else ""
    return {
        "name": field.name,
        "flag": field.flag,
        "help": field.option.form or field.option.help,
        "default": default,
        "choices": list(field.choices),
        "kind": _kind(field),
        "times": 2 if field.repeated else 1,
    }


def _kind(field: Field) -> str:
    """Return the kind of the form control."""
    if field.option.lines:
        return "lines"
    return "file" if field.is_file else "flag" if field.type is bool else "text"
