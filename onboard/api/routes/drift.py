"""Whether the texts of a task have changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.routes.tasks import TaskName
from onboard.contract.drift import DriftDocument
from onboard.contract.jobs import NAME
from onboard.domain.access import Scope
from onboard.domain.names import LATEST, MOST_LETTERS
from onboard.versions.drift import drift_of

router = APIRouter(prefix="/v1/tasks/{task}", tags=["versions"], dependencies=[Depends(requires(Scope.READ))])
Ref = Annotated[str, Query(pattern=NAME, max_length=MOST_LETTERS, description="A version (v3) or an alias.")]


@router.get("/drift")
def show_drift(task: TaskName, services: OpenServices, ref: Ref = LATEST) -> DriftDocument:
    """A version's texts of the newest week, compared with its training rows and with the week before."""
    return drift_of(services, f"{task}@{ref}")
