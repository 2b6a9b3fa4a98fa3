"""Workers: their jobs and machines; draining."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.contract.operations import WorkerDraining, WorkerList
from onboard.domain.access import Scope
from onboard.jobs.control import drain
from onboard.jobs.status import workers

router = APIRouter(prefix="/v1/workers", tags=["operations"])


@router.get("", response_model=WorkerList, dependencies=[Depends(requires(Scope.READ))])
def list_workers(services: OpenServices) -> WorkerList:
    """List workers with device, GPU, memory, heartbeat, job and its remaining time."""
    return workers(services.database)


@router.post("/{worker}/drain", response_model=WorkerDraining, dependencies=[Depends(requires(Scope.OPS))])
def drain_worker(
    worker: Annotated[str, Path(max_length=200, description="Name of a worker.")], services: OpenServices
) -> dict[str, Any]:
    """Let a worker finish its job and exit."""
    drain(services.database, worker)
    return {"worker": worker, "state": "draining"}
