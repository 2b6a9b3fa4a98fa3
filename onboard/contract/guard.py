"""The guard's verdict about a tuned hypernetwork, and the steps of the tuning.

Both are stored with jobs and hypernetworks; earlier releases stored fewer facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import ConfigDict, Field

from onboard.contract.document import Document, Partial, later

TaskVerdict = Literal["pass", "fail", "not enough evidence"]
GuardEvidence = Literal["held-out rows", "divergence"]


class GuardedTask(Partial):
    """The guard's verdict: the increase of the task's log-loss in nats, with one-sided bounds.

    The task passes where `high` is within the margin. `rows` counts rows or texts, `flipped` those of them with another
    answer.
    """

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    task: str
    verdict: TaskVerdict
    evidence: str | None = later(description="held-out rows, or divergence of the answers on other texts.")
    increase: float | None = later()
    low: float | None = later()
    high: float | None = later()
    rows: int = later(0)
    flipped: int | None = later()
    detectable: float | None = later(description="The smallest increase that would have been detected.")
    trouble: str | None = later(description="Why the task could not be judged.")

    @classmethod
    def unjudged(cls, task: str, trouble: str) -> Self:
        """The verdict on a task that cannot be judged; it does not pass."""
        return cls(
            task=task, verdict="not enough evidence", evidence=None, increase=None, low=None, high=None, rows=0,
            flipped=None, detectable=None, trouble=trouble,
        )  # fmt: skip

    @property
    def passed(self) -> bool:
        """Whether the evidence shows that the task loses no more than the margin."""
        return self.verdict == "pass"

    @property
    def reason(self) -> str:
        """The evidence for the verdict, in one sentence."""
        if self.trouble is not None:
            return self.trouble
        if self.increase is None or self.high is None:
            return "Its answers under the changed hypernetwork are not finite numbers."
        on = "held-out rows" if self.evidence == "held-out rows" else "texts without their labels"
        return f"Its loss may rise by {max(0.0, self.high):.3f} nats, looked at on {self.rows} {on}."


class Objection(Document):
    """A share of the proposed step that was refused, and the earlier tasks that did not pass under it."""

    share: float
    tasks: tuple[str, ...]


class GuardVerdict(Partial):
    """The result of tuning the hypernetwork: the verdict over all earlier tasks, and the reason.

    verdict: accepted if every checked task passes.
    share: the accepted share of the proposed step: 1, 1/2, 1/4, 1/8, or 0 if it was rejected.
    margin: the largest accepted increase of the mean log-loss, in nats.
    reason: one sentence; after a rejection with a remedy.
    tasks: one per checked task. When accepted, the figures are from the half of the evidence that was not used to
        choose the share; when rejected, from the last try.
    unchecked: number of earlier tasks that were not checked.
    chosen: the rule that selected the checked tasks; null if all were checked.
    objections: larger shares that were refused, the largest first.
    """

    verdict: Literal["accepted", "rejected"]
    share: float = 0.0
    margin: float = 0.0
    reason: str = ""
    tasks: tuple[GuardedTask, ...] = ()
    unchecked: int = 0
    chosen: str | None = None
    objections: tuple[Objection, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether any part of the step may be taken."""
        return self.verdict == "accepted"


class Tuning(Partial):
    """Whether the hypernetwork was tuned together with the embedding, and the result.

    asked: "auto" or "always".
    tried: whether it was tuned.
    kept: whether the version is pinned to the result.
    reason: why it was not tried, or why it was (not) kept.
    regulariser: the regularizer over earlier tasks.
    learning_rate: that of the hypernetwork's weights.
    loss: the loss of the new task, a number per step.
    penalty: the regularizer's value, a number per step.
    drift: the drift of the earlier tasks' weights.
    proposed: share of the step that the guard judged: the largest that improves the new task as much as any.
    by_share: the new task's mean loss in nats on `rows` of the `evidence`, by share ("0" is the embedding alone).
    before, after: the new task's mean loss in nats with the embedding alone and with the accepted step, on `rows` of
        the `evidence` ("held-out rows", "cross-validated rows", "training rows").
    looked: whether tuning ended after a trial of few `steps`; `by_share` has the losses of the trial.
    moved_from: version of the hypernetwork that was tuned, if the head moved meanwhile and the step was moved onto the
        new head; null if the head did not move.
    """

    asked: str = ""
    tried: bool = False
    kept: bool = False
    reason: str = ""
    learning_rate: float = 0.0
    regulariser: str = ""
    steps: int = 0
    loss: tuple[float, ...] = ()
    penalty: tuple[float, ...] = ()
    drift: float = 0.0
    looked: bool = False
    proposed: float = 0.0
    by_share: dict[str, float] = Field(default_factory=dict)
    before: float | None = None
    after: float | None = None
    evidence: str | None = None
    rows: int | None = None
    moved_from: int | None = None


def refused_by_guard(document: Mapping[str, Any]) -> bool:
    """Whether a job required tuning and was published without it. Its command exits with 4."""
    tuning, guard = document.get("tuning") or {}, document.get("guard") or {}
    return tuning.get("asked") == "always" and guard.get("verdict") == "rejected"
