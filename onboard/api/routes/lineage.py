"""The lineage of a task's versions, as JSON and as a picture."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.routes.tasks import TaskName
from onboard.contract.lineage import LineageDocument
from onboard.domain.access import Scope
from onboard.report.lineage import render_lineage
from onboard.versions.lineage import MOST_VERSIONS, lineage

router = APIRouter(prefix="/v1/tasks/{task}", tags=["versions"], dependencies=[Depends(requires(Scope.READ))])
Versions = Annotated[
    int, Query(ge=1, le=MOST_VERSIONS, description="Maximum number of versions; the newest are shown.")
]
_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The picture.", "content": {"image/svg+xml": {"schema": {"type": "string"}}}}
}


@router.get("/lineage")
def show_lineage(task: TaskName, services: OpenServices, versions: Versions = MOST_VERSIONS) -> LineageDocument:
    """Return dataset, init, hypernetwork and prior of each version, over all its ancestors."""
    return lineage(services, task, versions)


@router.get("/lineage.svg", response_class=Response, responses=_PICTURE)
def draw_lineage(task: TaskName, services: OpenServices, versions: Versions = MOST_VERSIONS) -> Response:
    """Draw the lineage as a picture."""
    return Response(render_lineage(lineage(services, task, versions)), media_type="image/svg+xml")
