"""What a job's document says of the hypernetwork: whether it was tuned, and what the guard found. JSON throughout."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict


class GuardTaskJson(TypedDict, total=False):
    """What the guard found for one earlier task: the change of its loss in nats, and flipped answers.

    verdict: "pass", "fail" or "not enough evidence".
    evidence: "held-out rows", or "divergence" of its answers on texts whose labels are not used.
    low, high: one-sided 95% bounds of the increase, or at the stricter level that judging several tasks asks for; the
        task passes where `high` is within the margin.
    rows: rows or texts that were looked at; flipped: of them with another answer.
    detectable: the smallest true increase, in nats, that so much evidence would have shown in four of five cases.
    trouble: why the task could not be judged; null where it was.
    """

    task: str
    verdict: str
    evidence: str | None
    increase: float | None
    low: float | None
    high: float | None
    rows: int | None
    flipped: int | None
    detectable: float | None
    trouble: str | None


class ObjectionJson(TypedDict):
    """A share of the proposed step that was not let through, and the earlier tasks that did not pass under it."""

    share: float
    tasks: list[str]


class GuardJson(TypedDict, total=False):
    """What came of tuning the hypernetwork: the verdict over all earlier tasks, and why.

    verdict: "accepted" or "rejected".
    share: of the proposed step from the present hypernetwork to the tuned one that was taken: 1, 1/2, 1/4, 1/8, or 0.
    margin: the increase in nats that is let through.
    unchecked: how many earlier tasks were not looked at; chosen: by what rule the others were, null where all were.
    objections: what was tried before and not let through, the largest share first.
    """

    verdict: str
    share: float | None
    margin: float | None
    reason: str | None
    tasks: list[GuardTaskJson] | None
    unchecked: int | None
    chosen: str | None
    objections: list[ObjectionJson]


class TuningJson(TypedDict, total=False):
    """Whether the hypernetwork was tuned together with the embedding, and what came of it.

    asked: "auto" or "always"; tried: whether it was tuned; kept: whether the version is pinned to what came of it.
    reason: why it was not tried, or why it was (not) kept.
    regulariser: what held the earlier tasks, learning_rate: of the hypernetwork's weights.
    loss: of the new task, penalty: of the regulariser; one number per step. drift: of the earlier tasks' weights.
    proposed: share of the step that was put to the guard: the largest that does the new task as much good as any.
    by_share: the new task's mean loss in nats on `rows` of the `evidence`, by share ("0" is the embedding alone).
    before, after: the new task's mean loss in nats, of the embedding alone and of what was let through, on so many
        `rows` of the `evidence` ("held-out rows", "rows that were predicted without themselves" or "training rows").
    looked: whether it was given up after a first look of few `steps`, whose losses `by_share` are.
    """

    asked: str
    tried: bool
    kept: bool
    reason: str
    regulariser: str
    learning_rate: float
    steps: int
    loss: list[float]
    penalty: list[float]
    drift: float
    proposed: float
    by_share: dict[str, float]
    before: float
    after: float
    evidence: str
    rows: int
    looked: bool


def refused_by_guard(document: Mapping[str, Any]) -> bool:
    """Whether a job was to tune the hypernetwork whatever happens, and was published without: its command exits 4."""
    asked, guard = document.get("tuning") or {}, document.get("guard") or {}
    return asked.get("asked") == "always" and guard.get("verdict") == "rejected"
