"""Change an existing task: add, correct and remove rows; rename, merge and delete labels."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from onboard.api.access import requires
from onboard.api.deps import ClientLeft, OpenServices
from onboard.api.forms import AdditionForm, described
from onboard.api.intake import Intake
from onboard.api.quotas import SubmitterWithRoom
from onboard.api.receiving import ReceivedAddition
from onboard.api.remedies import findings_over_http
from onboard.api.routes.jobs import Key
from onboard.api.routes.tasks import TaskName
from onboard.contract.changes import AcceptedRows, ChangedLabels, LabelList, LabelsWanted
from onboard.domain.access import Identity, Scope
from onboard.domain.addition import Addition
from onboard.domain.label_change import LabelChange
from onboard.jobs.add import Queueing
from onboard.jobs.labels import change_labels, list_labels
from onboard.jobs.waking import doorbell, start_webhook_worker, start_worker

router = APIRouter(prefix="/v1/tasks/{task}", tags=["tasks"])
Submitter = Annotated[Identity, Depends(requires(Scope.SUBMIT))]
_READ = [Depends(requires(Scope.READ))]


@router.post("/rows", status_code=202, response_model=AcceptedRows, openapi_extra=described(AdditionForm, Addition))
def add_rows(
    task: TaskName,
    identity: SubmitterWithRoom,
    received: ReceivedAddition,
    services: OpenServices,
    request: Request,
    response: Response,
    left: ClientLeft,
    idempotency_key: Key = None,
) -> AcceptedRows:
    """Add, correct or remove rows of a task; a job then learns a new version from all its rows."""
    intake: Intake = request.app.state.intake
    asked = received.addition(key=idempotency_key)
    added = intake.add(task, asked, identity.name, received.upload.content_bytes, left)
    start_worker(services, added.job.queue)
    response.headers["Location"] = f"/v1/jobs/{added.job.id}"
    return added.to_document(findings_over_http(added.job.spec.options["dataset_report"]["warnings"]))


@router.get("/labels", response_model=LabelList, dependencies=_READ)
def show_labels(task: TaskName, services: OpenServices) -> dict[str, Any]:
    """List the labels of a task's newest rows: words, training rows, descriptions."""
    return list_labels(services, task)


@router.post("/labels", response_model=ChangedLabels)
def change_labels_of_task(
    task: TaskName, body: LabelsWanted, identity: Submitter, services: OpenServices, response: Response
) -> ChangedLabels:
    """Rename a label, merge some, delete one with its rows, or describe one. Creates a new version; no alias moves.

    Renaming returns the version (200); any other change returns the job that makes it (202).
    """
    asked = LabelChange(body.action, tuple(body.labels), body.to, body.description)
    how = Queueing(owner=identity.name)
    changed = change_labels(services, doorbell(services, outside=True), task, asked, how, fast=body.fast)
    if changed.queued is None:
        start_webhook_worker(services)
        return changed.to_document()
    start_worker(services, changed.queued.job.queue)
    response.status_code = 202
    response.headers["Location"] = f"/v1/jobs/{changed.queued.job.id}"
    return changed.to_document()
