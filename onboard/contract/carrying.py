"""Tasks that are carried to the head of their base."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from onboard.contract.document import Document, Metrics
from onboard.contract.evaluations import PairedComparison
from onboard.contract.guard import GuardedTask
from onboard.domain.limits import MAX_CARRIED


class CarryTask(BaseModel, extra="forbid"):
    """How to carry a task."""

    dry_run: Annotated[bool, Field(description="Only run the guard; change nothing.")] = False


class CarrySome(CarryTask):
    """How to carry the tasks that are not at the head."""

    limit: Annotated[
        int, Field(ge=1, le=MAX_CARRIED, description="Maximum number of tasks; the guard judges them together.")
    ] = MAX_CARRIED
    cursor: Annotated[str | None, Field(max_length=400, description="`next` of the answer before.")] = None


class CarriedTask(Document):
    """The result for one task."""

    task: str
    earlier_version: Annotated[int, Field(alias="from", description="The version that `latest` named before.")]
    version: Annotated[int | None, Field(description="The version that it names now; null if nothing changed.")]
    hypernetwork_from: int
    hypernetwork_version: Annotated[int, Field(description="The head.")]
    reason: str
    metrics: Annotated[Metrics | None, Field(description="Metrics under the head, if there are rows to measure on.")]
    guard: GuardedTask | None
    comparison: Annotated[
        PairedComparison | None,
        Field(description="The version under the head compared with the one that `latest` named."),
    ]


class CarriedTasks(Document):
    """Tasks that were not at the head. Refused tasks are unchanged."""

    dry_run: bool
    carried: tuple[CarriedTask, ...]
    refused: tuple[CarriedTask, ...]


class CarriedDocument(CarriedTasks):
    """Tasks that were not at the head. Refused tasks are unchanged."""

    next: Annotated[str | None, Field(description="Cursor of the next page.")]
