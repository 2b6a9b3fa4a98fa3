"""One job: its way through the stages, its log, what it chose and found, and what can be done about it."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import CameFrom, page, to
from onboard.api.pages.timeline import timeline
from onboard.api.routes.jobs import JobId
from onboard.domain.access import Scope
from onboard.jobs.control import cancel, find_job, full_document, retry
from onboard.report.page import page_of
from workers.waking import wake

_READ: Final = [Depends(requires(Scope.READ))]
_SUBMIT: Final = [Depends(requires(Scope.SUBMIT))]

router = APIRouter(prefix="/jobs/{job}", include_in_schema=False)


@router.get("", dependencies=_READ)
@router.get(".json", dependencies=_READ)
def show_job(job: JobId, request: Request, services: OpenServices) -> Response:
    """One job, by its id or by its task's name for the newest."""
    present = find_job(services.database, job)
    document = full_document(services.database, present)
    shown = page_of(document)
    if document.get("version") is None:
        shown = replace(shown, facts=[])  # there is nothing that is pinned
    attempts = timeline(document, document["events"])
    return page(request, "job.html", document, shown=shown, attempts=attempts, finished=present.state.finished)


@router.post("/cancel", dependencies=_SUBMIT)
def cancel_job(job: JobId, request: Request, services: OpenServices, back: CameFrom) -> Response:
    """Cancel a queued job at once, a running one at its next step."""
    cancel(services.database, job)
    request.app.state.overview.forget()
    return to(back)


@router.post("/retry", dependencies=_SUBMIT)
def retry_job(job: JobId, request: Request, services: OpenServices, back: CameFrom) -> Response:
    """Queue a failed, cancelled or dead job again."""
    wake(services, retry(services.database, job).queue, outside=True)
    request.app.state.overview.forget()
    return to(back)
