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

    dry_run: Annotated[bool, Field(description="Judge only, change nothing.")] = False


class CarrySome(CarryTask):
    """How to carry the tasks that are not at the head."""

    limit: Annotated[int, Field(ge=1, le=MAX_CARRIED, description="At most so many; they are judged together.")] = (
        MAX_CARRIED
    )
    cursor: Annotated[str | None, Field(max_length=400, description="`next` of the answer before.")] = None


class CarriedTask(Document):
    """The result for one task."""

    task: str
    earlier_version: Annotated[int, Field(alias="from", description="What `latest` named.")]
    version: Annotated[int | None, Field(description="What it names now; null where nothing was changed.")]
    hypernetwork_from: int
    hypernetwork_version: Annotated[int, Field(description="The head.")]
    reason: str
    metrics: Annotated[Metrics | None, Field(description="Under the head, as far as there are rows to measure on.")]
    guard: GuardedTask | None
    comparison: Annotated[PairedComparison | None, Field(description="Under the head against what `latest` named.")]


class CarriedTasks(Document):
    """Tasks that were not at the head. Refused tasks are unchanged."""

    dry_run: bool
    carried: tuple[CarriedTask, ...]
    refused: tuple[CarriedTask, ...]


class CarriedDocument(CarriedTasks):
    """Tasks that were not at the head. Refused tasks are unchanged."""

    next: Annotated[str | None, Field(description="The cursor of those that follow.")]
