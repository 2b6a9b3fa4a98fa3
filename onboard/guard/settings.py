"""How strict the guard is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GuardSettings:
    """The defaults were measured (bench/results/guard.md, decision 12).

    Args:
        margin: increase of a task's mean log-loss that is let through, in nats.
        level: of the one-sided bounds, over all tasks together.
        choosing: share of the margin that has to do on the half which chooses the share of the step. What only just
            passes there would pass on the other half as often as not, and there is no third look.
        shares: of the step that are tried, in this order.
        fewest_rows: held-out rows from which on they decide: a half of them is as sharp there as texts are. With fewer
            the divergence decides, and they may only object.
        texts: of each group (own ones, single canaries, pairs) that a task without so many rows is looked at on.
        spread: κ: a divergence of D nats goes with a true increase of D ± κ √D (one standard deviation).
        most_tasks: that are looked at; of more, those at the greatest risk.
        most_sources: the base's own tasks among them, which nobody here has trained.
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
