"""Tasks that are carried to the head of their base."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from onboard.api.schemas.evaluations import PairedComparison
from onboard.api.schemas.versions import Metrics
from onboard.versions.carry import MOST_TASKS


class CarryTask(BaseModel, extra="forbid"):
    """How a task is to be carried."""

    dry_run: Annotated[bool, Field(description="Judge only, change nothing.")] = False


class CarrySome(CarryTask):
    """How the tasks that are not at the head are to be carried."""

    limit: Annotated[int, Field(ge=1, le=MOST_TASKS, description="At most so many; they are judged together.")] = (
        MOST_TASKS
    )
    cursor: Annotated[str | None, Field(max_length=400, description="`next` of the answer before.")] = None


class GuardedTask(BaseModel):
    """What the guard found: the increase of the task's log-loss in nats, with its one-sided bounds."""

    task: str
    verdict: Literal["pass", "fail", "not enough evidence"]
    evidence: Annotated[str | None, Field(description="held-out rows, or divergence: of answers on other texts.")]
    increase: float | None
    low: float | None
    high: float | None
    rows: int
    flipped: int | None
    detectable: Annotated[float | None, Field(description="The smallest increase that would have been noticed.")]
    trouble: Annotated[str | None, Field(description="Why it could not be judged.")]


class CarriedTask(BaseModel, serialize_by_alias=True):
    """What became of one task."""

    task: str
    from_: Annotated[int, Field(alias="from", description="What `latest` named.")]
    version: Annotated[int | None, Field(description="What it names now; null where nothing was changed.")]
    hypernetwork_from: int
    hypernetwork_version: Annotated[int, Field(description="The head.")]
    reason: str
    metrics: Annotated[Metrics | None, Field(description="Under the head, as far as there are rows to measure on.")]
    guard: GuardedTask | None
    comparison: Annotated[PairedComparison | None, Field(description="Under the head against what `latest` named.")]


class CarriedDocument(BaseModel):
    """Tasks that were not at the head. What was refused stays as it is."""

    dry_run: bool
    carried: list[CarriedTask]
    refused: list[CarriedTask]
    next: Annotated[str | None, Field(description="The cursor of those that follow.")]
