"""Carry tasks that are pinned to an earlier hypernetwork to the head, if the guard accepts it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Depends

from onboard.api.access import requires
from onboard.api.deps import OpenServices, decode_name, encode_cursor
from onboard.api.routes.embeddings import OpenShelf
from onboard.api.routes.tasks import TaskName
from onboard.contract.carrying import CarriedDocument, CarrySome, CarryTask
from onboard.domain.access import Scope
from onboard.jobs.waking import start_webhook_worker
from onboard.registry.services import Services
from onboard.versions.carry import Carried, carry_some, carry_task

router = APIRouter(prefix="/v1", tags=["tasks"], dependencies=[Depends(requires(Scope.PROMOTE))])
_TASKS = "carry"


@router.post("/carry")
def carry_tasks(
    services: OpenServices, shelf: OpenShelf, body: Annotated[CarrySome | None, Body(title="Wanted")] = None
) -> CarriedDocument:
    """Carry the next few tasks by name that are not at the head; `next` continues. One request at a time."""
    body = body or CarrySome()
    after = decode_name(_TASKS, body.cursor)
    carried = carry_some(
        services, after, most=body.limit, dry_run=body.dry_run, bounded=True, manifests=shelf.manifests
    )
    return _told(services, carried)


@router.post("/tasks/{task}/carry")
def carry_one_task(
    task: TaskName,
    services: OpenServices,
    shelf: OpenShelf,
    body: Annotated[CarryTask | None, Body(title="Wanted")] = None,
) -> CarriedDocument:
    """Carry the version that a task's `latest` names to the head of its base. Lists nothing if it is already there."""
    dry_run = body is not None and body.dry_run
    return _told(services, carry_task(services, task, dry_run=dry_run, bounded=True, manifests=shelf.manifests))


def _told(services: Services, carried: Carried) -> CarriedDocument:
    if any(outcome.version for outcome in carried.outcomes):
        start_webhook_worker(services)
    following = None if carried.next is None else encode_cursor(_TASKS, carried.next)
    told = carried.to_document()
    return CarriedDocument(dry_run=told.dry_run, carried=told.carried, refused=told.refused, next=following)
