"""Judge the change of each task's answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onboard.contract.guard import GuardedTask, GuardEvidence, TaskVerdict
from onboard.guard.settings import GuardSettings
from onboard.statistics.bounds import Increase, increase_of_divergence, increase_of_losses
from onboard.statistics.holm import holm_levels

FEWEST_TOLD = 8  # minimum number of held-out rows to object to a divergence


@dataclass(frozen=True)
class Seen:
    """The change of one task's answers.

    Args:
        task: its name.
        evidence: kind of evidence that decides.
        changes: (m,) change of the log-loss of each labeled row, nats.
        divergences: (n,) KL(before ‖ after) of each row and text, nats; labeled rows come first.
        group: (n,) group of texts of each.
        flipped: (n,) whether the most likely label changed.
    """

    task: str
    evidence: GuardEvidence
    changes: np.ndarray
    divergences: np.ndarray
    group: np.ndarray
    flipped: np.ndarray

    @classmethod
    def between(
        cls,
        task: str,
        evidence: GuardEvidence,
        before: np.ndarray,
        after: np.ndarray,
        targets: np.ndarray,
        group: np.ndarray,
    ) -> Seen:
        """Compare log-probabilities (n, K) before and after; `targets` (m, K) belong to the first m rows."""
        change = before - after  # (n, K)
        labelled = change[: len(targets)]
        return cls(
            task=task,
            evidence=evidence,
            changes=(targets * labelled).sum(1),
            divergences=(np.exp(before) * change).sum(1),
            group=group,
            flipped=before.argmax(1) != after.argmax(1),
        )

    def increase(self, settings: GuardSettings) -> Increase:
        """Return the increase of the mean log-loss, by the evidence that decides; the worst group of texts counts."""
        if self.evidence == "held-out rows":
            return increase_of_losses(self.changes)
        means = [float(self.divergences[self.group == group].mean()) for group in np.unique(self.group)]
        return increase_of_divergence(float(np.max(means)), settings.spread)


def judge(seen: Sequence[Seen], settings: GuardSettings) -> list[GuardedTask]:
    """Return a verdict for each of T tasks: whether its loss rises by at most the margin, with Holm's correction."""
    increases = [evidence.increase(settings) for evidence in seen]
    p_values = [increase.p_value(settings.margin) for increase in increases]
    levels = holm_levels(p_values, settings.level)
    return [
        _objection(evidence, settings) or _verdict(evidence, increase, p_value <= level, level, settings)
        for evidence, increase, p_value, level in zip(seen, increases, p_values, levels, strict=True)
    ]


def _objection(seen: Seen, settings: GuardSettings) -> GuardedTask | None:
    """Return a loss that held-out rows show, even if they are too few to show that there is none."""
    if seen.evidence == "held-out rows" or len(seen.changes) < FEWEST_TOLD:
        return None
    increase = increase_of_losses(seen.changes)
    if not increase.low(settings.level) > settings.margin:
        return None
    return _told(seen, "fail", "held-out rows", increase, settings.level)


def _verdict(seen: Seen, increase: Increase, passed: bool, level: float, settings: GuardSettings) -> GuardedTask:
    """Return a verdict; if the mean is within the margin and the bound is not, the rows prove neither."""
    unsure = seen.evidence == "held-out rows" and increase.mean <= settings.margin
    verdict: TaskVerdict = "pass" if passed else "not enough evidence" if unsure else "fail"
    return _told(seen, verdict, seen.evidence, increase, level)


def _told(seen: Seen, verdict: TaskVerdict, evidence: GuardEvidence, increase: Increase, level: float) -> GuardedTask:
    flipped = seen.flipped if evidence == "divergence" else seen.flipped[: len(seen.changes)]
    return GuardedTask(
        task=seen.task,
        verdict=verdict,
        evidence=evidence,
        increase=_number(increase.mean),
        low=_number(increase.low(level)),
        high=_number(increase.high(level)),
        rows=len(flipped),
        flipped=int(flipped.sum()),
        detectable=_number(increase.detectable(level)),
        trouble=None,
    )


def _number(value: float) -> float | None:
    """Replace infinities, which JSON does not have."""
    return value if math.isfinite(value) else None
