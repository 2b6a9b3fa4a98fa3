"""Settings of the guard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GuardSettings:
    """The defaults were measured (bench/results/guard.md, decision 12).

    Args:
        margin: accepted increase of a task's mean log-loss, in nats.
        level: of the one-sided bounds, over all tasks together.
        choosing: share of the margin on the half that chooses the share of the step. A step that only just passes there
            would fail on the other half half of the time, and there is no third check.
        shares: shares of the step to try, in this order.
        fewest_rows: minimum number of held-out rows to decide: half of them is then as precise as texts. With fewer,
            the divergence decides, and rows can only object.
        texts: number of texts per group (task's texts, single canaries, pairs) for a task with fewer rows.
        spread: κ: a divergence of D nats means a true increase of D ± κ √D (one standard deviation).
        most_tasks: maximum number of tasks that are checked, those at the greatest risk.
        most_sources: maximum number of the base's own tasks among them, which were not trained here.
    """

    margin: float = 0.02
    choosing: float = 0.75
    level: float = 0.05
    shares: tuple[float, ...] = (1.0, 0.5, 0.25, 0.125)
    fewest_rows: int = 128
    texts: int = 32
    spread: float = 0.2
    most_tasks: int = 100
    most_sources: int = 32
