"""Queues: waiting and running jobs, durations; pausing."""

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
    """List queues: waiting and running jobs with their age, workers, and recently ended jobs."""
    return queues(services.database)


@router.get("/jobs", response_model=OpenJobs, dependencies=[Depends(requires(Scope.READ))])
def show_open_jobs(
    services: OpenServices,
    limit: Annotated[
        int, Query(ge=0, le=MAX_PAGE, description="Maximum number of waiting jobs; the most urgent are shown.")
    ] = 20,
) -> OpenJobs:
    """List running jobs with their progress, and waiting ones in the order in which they will be claimed."""
    return open_jobs(services.database, limit)


@router.post("/pause", response_model=QueuePaused, dependencies=[Depends(requires(Scope.OPS))])
def pause_queue(choice: QueueChoice, services: OpenServices) -> dict[str, Any]:
    """Pause a queue: waiting jobs stay queued, running ones continue."""
    set_paused(services.database, choice.queue, paused=True)
    return {"queue": choice.queue, "paused": True}


@router.post("/resume", response_model=QueuePaused, dependencies=[Depends(requires(Scope.OPS))])
def resume_queue(choice: QueueChoice, services: OpenServices) -> dict[str, Any]:
    """Resume a paused queue."""
    set_paused(services.database, choice.queue, paused=False)
    warning, _ = wake(services, choice.queue, outside=True)
    return {"queue": choice.queue, "paused": False, "warning": warning}
