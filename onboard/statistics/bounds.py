"""How much a task has lost, how sure that is, and what several tasks at once ask for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

POWER = 0.8  # of the smallest increase that is said to be noticeable


@dataclass(frozen=True)
class Increase:
    """An estimate of the increase of a mean log-loss, in nats.

    Args:
        mean: the estimate.
        error: its standard error; infinite where nothing can be said.
        freedom: degrees of freedom of Student's t; infinite for the normal distribution.
    """

    mean: float
    error: float
    freedom: float = math.inf

    def p_value(self, margin: float) -> float:
        """How likely so small an estimate would be if the true increase were the margin; 1 where it is no number."""
        if not math.isfinite(self.mean):
            return 1.0
        if self.error == 0.0:
            return 0.0 if self.mean <= margin else 1.0
        return self._below((self.mean - margin) / self.error)

    def high(self, level: float) -> float:
        """Upper one-sided bound at this level."""
        return self.mean + self._reach(level)

    def low(self, level: float) -> float:
        """Lower one-sided bound at this level."""
        return self.mean - self._reach(level)

    def detectable(self, level: float) -> float:
        """The smallest true increase that is told from none at this level in four of five cases."""
        return self._reach(level) + (0.0 if self.error == 0.0 else self.error * self._quantile(POWER))

    def _reach(self, level: float) -> float:
        return 0.0 if self.error == 0.0 else self.error * self._quantile(1.0 - level)

    def _below(self, value: float) -> float:
        from scipy.special import ndtr, stdtr

        return float(ndtr(value) if math.isinf(self.freedom) else stdtr(self.freedom, value))

    def _quantile(self, probability: float) -> float:
        from scipy.special import ndtri, stdtrit

        return float(ndtri(probability) if math.isinf(self.freedom) else stdtrit(self.freedom, probability))


def increase_of_losses(changes: np.ndarray) -> Increase:
    """From the change of each labelled row's log-loss (m,): Student's t around the mean of paired differences."""
    mean = float(changes.mean()) if len(changes) else 0.0
    if len(changes) < 2 or not math.isfinite(mean):
        return Increase(mean, math.inf)
    return Increase(mean, float(changes.std(ddof=1)) / math.sqrt(len(changes)), len(changes) - 1)


def increase_of_divergence(divergence: float, spread: float) -> Increase:
    """From the mean divergence D = KL(before ‖ after) of the answers to texts, without any label.

    If the answers before were calibrated, the loss would rise by just D. They are not quite, and what that does is of
    first order in the change of the answers, as √D is: D ± spread · √D, measured in bench/guard.
    """
    return Increase(divergence, spread * math.sqrt(max(0.0, divergence)))


def holm_levels(p_values: Sequence[float], level: float) -> list[float]:
    """The level at which each of T hypotheses is judged so that all together are judged at `level`.

    Holm's step-down procedure (1979): the smallest p-value is held against level / T, the next against level / (T − 1),
    and so on; from the first that fails on, nothing more is rejected. A hypothesis is rejected just where its p-value
    is at most its level.
    """
    levels = [level] * len(p_values)
    failed: int | None = None
    for place, index in enumerate(np.argsort(p_values, kind="stable").tolist()):
        steps = place if failed is None else failed
        levels[index] = level / (len(p_values) - steps)
        if failed is None and p_values[index] > levels[index]:
            failed = place
    return levels
