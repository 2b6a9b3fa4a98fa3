"""Change a task's rows and labels in the browser; then show the job or the task."""

from __future__ import annotations

import secrets
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import ClientLeft, OpenServices
from onboard.api.intake import Intake
from onboard.api.pages.frame import page, to
from onboard.api.quotas import SubmitterWithRoom
from onboard.api.receiving import ReceivedAddition
from onboard.api.routes.tasks import TaskName
from onboard.data.descriptions import MOST_CHARACTERS
from onboard.domain.access import Identity, Scope
from onboard.domain.label_change import MOST_LETTERS, LabelAction, LabelChange
from onboard.jobs.add import Queueing
from onboard.jobs.labels import change_labels, list_labels
from onboard.jobs.waking import doorbell, start_webhook_worker, start_worker

_SUBMIT: Final = [Depends(requires(Scope.SUBMIT))]
_MOST_LABELS: Final = 1_000
Submitter = Annotated[Identity, Depends(requires(Scope.SUBMIT))]
Key = Annotated[str, Query(min_length=1, max_length=MOST_LETTERS)]
Name = Annotated[str, Form(max_length=MOST_LETTERS)]

router = APIRouter(prefix="/tasks/{task}", include_in_schema=False)


@router.get("/change", dependencies=_SUBMIT)
@router.get("/change.json", dependencies=_SUBMIT)
def show_changes(task: TaskName, request: Request, services: OpenServices) -> Response:
    """Show the labels of a task's newest rows, and the forms to change rows and labels."""
    return page(request, "change.html", list_labels(services, task), key=secrets.token_hex(12))


@router.post("/rows")
def add_rows(
    task: TaskName,
    identity: SubmitterWithRoom,
    received: ReceivedAddition,
    services: OpenServices,
    request: Request,
    left: ClientLeft,
    key: Key,
) -> Response:
    """Add, correct or remove rows; sending the same form twice creates one job."""
    intake: Intake = request.app.state.intake
    asked = received.addition(key=key)
    added = intake.add(task, asked, identity.name, received.upload.content_bytes, left)
    start_worker(services, added.job.queue)
    request.app.state.overview.forget()
    return to(f"/jobs/{added.job.id}")


@router.post("/labels")
def change_task_labels(
    task: TaskName,
    identity: Submitter,
    request: Request,
    services: OpenServices,
    action: Annotated[LabelAction, Form()],
    label: Annotated[list[str], Form(max_length=_MOST_LABELS)],
    name: Name = "",
    description: Annotated[str | None, Form(max_length=MOST_CHARACTERS + 300)] = None,
) -> Response:
    """Rename, merge, delete or describe labels."""
    asked = LabelChange(action, tuple(label), name.strip() or None, description)
    how = Queueing(owner=identity.name)
    changed = change_labels(services, doorbell(services, outside=True), task, asked, how)
    request.app.state.overview.forget()
    if changed.queued is None:
        start_webhook_worker(services)
        return to(f"/tasks/{task}")
    start_worker(services, changed.queued.job.queue)
    return to(f"/jobs/{changed.queued.job.id}")
