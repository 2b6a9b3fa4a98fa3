"""The page of a job: stages, log, choices, results and actions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import ClientLeft, OpenServices
from onboard.api.intake import Intake
from onboard.api.pages.frame import CameFrom, page, to
from onboard.api.pages.timeline import timeline
from onboard.api.quotas import SubmitterWithRoom
from onboard.api.routes.jobs import JobId
from onboard.domain.access import Scope
from onboard.domain.addition import Addition
from onboard.domain.job import Job
from onboard.jobs.control import cancel, find_job, full_document, retry
from onboard.jobs.relabel import as_jsonl, corrected, labels_of, relabeled, suspects_of
from onboard.jobs.waking import start_worker, wake
from onboard.registry.services import Services
from onboard.report.figures import live_curves
from onboard.report.page import page_of

_READ: Final = [Depends(requires(Scope.READ))]
_SUBMIT: Final = [Depends(requires(Scope.SUBMIT))]

_MOST_SUSPECTS: Final = 10_000
_MOST_DIGITS: Final = 10

router = APIRouter(prefix="/jobs/{job}", include_in_schema=False)


@router.get("", dependencies=_READ)
@router.get(".json", dependencies=_READ)
def show_job(job: JobId, request: Request, services: OpenServices) -> Response:
    """Show a job, by its id or by its task's name for the newest."""
    present = find_job(services.database, job)
    document = full_document(services.database, present)
    shown = page_of(document)
    if document.get("version") is None:
        shown = replace(shown, facts=[])  # nothing is pinned
    finished = present.state.finished
    more: dict[str, Any] = {
        "shown": shown,
        "attempts": timeline(document, document["events"]),
        "finished": finished,
        "loss": [] if finished else live_curves(document["events"]),
        "suspects": suspects_of(document) if finished else [],
        "labels": labels_of(document),
    }
    return page(request, "job.html", document, **more)


@router.post("/relabel")
def learn_relabeled(
    job: JobId,
    identity: SubmitterWithRoom,
    request: Request,
    services: OpenServices,
    left: ClientLeft,
    label: Annotated[list[str] | None, Form(max_length=_MOST_SUSPECTS)] = None,
) -> Response:
    """Correct the labels of the task's rows as chosen, like `onboard add --replace`."""
    present, document, places = _picked(services, job, label)
    rows = as_jsonl(corrected(services, present, document, places))
    intake: Intake = request.app.state.intake
    with TemporaryDirectory(dir=request.app.state.uploads) as folder:
        file = Path(folder) / f"{present.spec.task}.jsonl"
        file.write_text(rows, encoding="utf-8")
        added = intake.add(present.spec.task, Addition(file, replace=True), identity.name, len(rows.encode()), left)
    start_worker(services, added.job.queue)
    request.app.state.overview.forget()
    return to(f"/jobs/{added.job.id}")


@router.post("/relabeled.jsonl", dependencies=_SUBMIT)
def download_relabeled(
    job: JobId,
    services: OpenServices,
    label: Annotated[list[str] | None, Form(max_length=_MOST_SUSPECTS)] = None,
) -> Response:
    """Download the training rows with those labels, as a file for `onboard submit`."""
    present, document, places = _picked(services, job, label)
    dataset = relabeled(services, present, document, places)
    disposition = f'attachment; filename="{present.spec.task}.jsonl"'
    return Response(
        as_jsonl(dataset.train), media_type="application/jsonl", headers={"Content-Disposition": disposition}
    )


def _picked(services: Services, name: str, label: list[str] | None) -> tuple[Job, dict[str, Any], list[int | None]]:
    """Return the job, its document, and the index of the label chosen for each suspect."""
    present = find_job(services.database, name)
    places = [int(place) if place.isdecimal() and len(place) < _MOST_DIGITS else None for place in label or []]
    return present, full_document(services.database, present), places


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
