"""Estimate how much a task has lost, with bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from onboard.statistics.student import below, quantile

POWER = 0.8  # for the smallest detectable increase


@dataclass(frozen=True)
class Increase:
    """An estimate of the increase of a mean log-loss, in nats.

    Args:
        mean: the estimate.
        error: its standard error; infinite if nothing is known.
        freedom: degrees of freedom of Student's t; infinite for the normal distribution.
    """

    mean: float
    error: float
    freedom: float = math.inf

    def p_value(self, margin: float) -> float:
        """Return the probability of so small an estimate if the true increase were the margin; 1 if it is
        not a number.
        """
        if not math.isfinite(self.mean):
            return 1.0
        if self.error == 0.0:
            return 0.0 if self.mean <= margin else 1.0
        return below((self.mean - margin) / self.error, self.freedom)

    def high(self, level: float) -> float:
        """Upper one-sided bound at this level."""
        return self.mean + self._reach(level)

    def low(self, level: float) -> float:
        """Lower one-sided bound at this level."""
        return self.mean - self._reach(level)

    def detectable(self, level: float) -> float:
        """Smallest true increase that is detected at this level in four of five cases."""
        return self._reach(level) + (0.0 if self.error == 0.0 else self.error * quantile(POWER, self.freedom))

    def _reach(self, level: float) -> float:
        return 0.0 if self.error == 0.0 else self.error * quantile(1.0 - level, self.freedom)


def increase_of_losses(changes: np.ndarray) -> Increase:
    """Estimate from the changes of labeled rows' log-loss (m,): Student's t around the mean of paired differences."""
    mean = float(changes.mean()) if len(changes) else 0.0
    if len(changes) < 2 or not math.isfinite(mean):
        return Increase(mean, math.inf)
    return Increase(mean, float(changes.std(ddof=1)) / math.sqrt(len(changes)), len(changes) - 1)


def increase_of_divergence(divergence: float, spread: float) -> Increase:
    """Estimate from the mean divergence D = KL(before ‖ after) of answers to texts, without labels.

    If the answers before were calibrated, the loss would rise by exactly D. They are not quite, and the effect of that
    is of first order in the change of the answers, like √D: D ± spread · √D, measured in bench/guard.
    """
    return Increase(divergence, spread * math.sqrt(max(0.0, divergence)))
