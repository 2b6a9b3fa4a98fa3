"""What the guard found: a verdict per earlier task, and one over all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal, cast

from onboard.domain.tuning import GuardJson, GuardTaskJson

Verdict = Literal["pass", "fail", "not enough evidence"]
Evidence = Literal["held-out rows", "divergence"]


@dataclass(frozen=True)
class TaskVerdict:
    """Whether a task's answers are still as good as they were.

    Args:
        task: its name.
        verdict: "pass" where `high` is within the margin.
        evidence: what was looked at; None where nothing could be.
        increase: of the mean log-loss, in nats: measured on held-out rows, expected from the divergence otherwise.
        low, high: its one-sided 95% bounds, or at the stricter level that Holm's procedure asks for.
        rows: rows or texts that were looked at.
        flipped: of them with another answer.
        detectable: the smallest true increase that would have been noticed with 80% power, in nats.
        trouble: why it could not be judged; None where it was.
    """

    task: str
    verdict: Verdict
    evidence: Evidence | None = None
    increase: float | None = None
    low: float | None = None
    high: float | None = None
    rows: int = 0
    flipped: int | None = None
    detectable: float | None = None
    trouble: str | None = None

    @property
    def passed(self) -> bool:
        """Whether it was shown that the task loses no more than the margin."""
        return self.verdict == "pass"

    @property
    def reason(self) -> str:
        """What the verdict rests on, in one sentence."""
        if self.trouble is not None:
            return self.trouble
        if self.increase is None or self.high is None:
            return "Its answers under the changed hypernetwork are no numbers."
        on = "held-out rows" if self.evidence == "held-out rows" else "texts without their labels"
        return f"Its loss may rise by {max(0.0, self.high):.3f} nats, looked at on {self.rows} {on}."

    def to_json(self) -> GuardTaskJson:
        """The verdict as a JSON document."""
        return cast(GuardTaskJson, asdict(self))


@dataclass(frozen=True)
class Judgement:
    """What became of a tuned hypernetwork; `interpolate.between(present, candidate, share)` is what may be published.

    Args:
        verdict: "accepted" where every checked task passes.
        share: of the step from the present hypernetwork to the candidate: 1, 1/2, 1/4 or 1/8; 0 when rejected.
        tasks: one per task that was looked at. When accepted the figures are of the half of the evidence that did not
            choose the share; when rejected those of what was tried last.
        reason: one sentence; what to do about it where it was rejected.
        margin: increase of the mean log-loss that is let through, in nats.
        unchecked: how many earlier tasks were not looked at.
        chosen: by what rule the others were; None where all were looked at.
        objections: shares that were tried and not let through, each with the tasks that did not pass.
    """

    verdict: Literal["accepted", "rejected"]
    share: float
    tasks: tuple[TaskVerdict, ...]
    reason: str
    margin: float
    unchecked: int = 0
    chosen: str | None = None
    objections: tuple[tuple[float, tuple[str, ...]], ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether anything of the step may be taken."""
        return self.verdict == "accepted"

    def to_json(self) -> GuardJson:
        """The judgement as a JSON document."""
        return {
            "verdict": self.verdict,
            "share": self.share,
            "margin": self.margin,
            "reason": self.reason,
            "tasks": [task.to_json() for task in self.tasks],
            "unchecked": self.unchecked,
            "chosen": self.chosen,
            "objections": [{"share": share, "tasks": list(tasks)} for share, tasks in self.objections],
        }
