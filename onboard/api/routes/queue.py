"""Queues: how many jobs wait and run, how long they take; pausing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.contract.operations import OpenJobs, QueueChoice, QueueList, QueuePaused
from onboard.domain.access import Scope
from onboard.domain.limits import MAX_PAGE
from onboard.jobs.control import set_paused
from onboard.jobs.status import open_jobs, queues
from onboard.jobs.waking import wake

router = APIRouter(prefix="/v1/queue", tags=["operations"])


@router.get("", response_model=QueueList, dependencies=[Depends(requires(Scope.READ))])
def show_queues(services: OpenServices) -> QueueList:
    """Every queue: what waits and runs and since when, who serves it, and what ended lately."""
    return queues(services.database)


@router.get("/jobs", response_model=OpenJobs, dependencies=[Depends(requires(Scope.READ))])
def show_open_jobs(
    services: OpenServices,
    limit: Annotated[int, Query(ge=0, le=MAX_PAGE, description="At most so many that wait, the most urgent.")] = 20,
) -> OpenJobs:
    """What runs and how far it is, and what waits in the order in which it will be taken."""
    return open_jobs(services.database, limit)


@router.post("/pause", response_model=QueuePaused, dependencies=[Depends(requires(Scope.OPS))])
def pause_queue(choice: QueueChoice, services: OpenServices) -> dict[str, Any]:
    """Hold a queue's waiting jobs back; running ones go on."""
    set_paused(services.database, choice.queue, paused=True)
    return {"queue": choice.queue, "paused": True}


@router.post("/resume", response_model=QueuePaused, dependencies=[Depends(requires(Scope.OPS))])
def resume_queue(choice: QueueChoice, services: OpenServices) -> dict[str, Any]:
    """Let a paused queue go on."""
    set_paused(services.database, choice.queue, paused=False)
    warning, _ = wake(services, choice.queue, outside=True)
    return {"queue": choice.queue, "paused": False, "warning": warning}
