"""Two versions of a task side by side."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from onboard.api.access import requires
from onboard.api.routes.embeddings import OpenShelf
from onboard.api.routes.tasks import TaskName
from onboard.api.schemas.jobs import NAME
from onboard.api.schemas.versions import ComparisonDocument
from onboard.domain.access import Scope
from onboard.domain.names import MOST_LETTERS, Reference

router = APIRouter(prefix="/v1/tasks/{task}", tags=["versions"], dependencies=[Depends(requires(Scope.READ))])
Ref = Annotated[str, Query(pattern=NAME, max_length=MOST_LETTERS, description="latest, vN or an alias.")]


@router.get("/compare", response_model=ComparisonDocument)
def compare_versions(task: TaskName, a: Ref, b: Ref, shelf: OpenShelf) -> Response:
    """Metrics, confusion, flipped answers and the paired interval; the verdict is about `b`. One at a time is made."""
    comparison = shelf.comparison(Reference.parse(f"{task}@{a}"), Reference.parse(f"{task}@{b}"))
    return Response(comparison, media_type="application/json")
