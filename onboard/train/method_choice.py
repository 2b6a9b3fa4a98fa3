"""The rule of `--method auto`: which methods to try, when to stop, and which one to publish.

All methods are judged by their losses on the same rows, which trained none of them. docs/decisions/0022 explains the
rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.statistics.student import mean_interval, paired
from onboard.train.worth_tuning import FEWEST_ROWS, GOOD

WITHIN: Final = 0.25  # standard errors of the paired difference
_IN_WORDS: Final = "a quarter of a standard error"  # the same
AS_CHEAP: Final = 1.1  # relative to the fewest bytes; smaller savings, such as an embedding's, are not worth any loss


@dataclass(frozen=True)
class Tried:
    """A method as it would be published.

    Args:
        losses: nats of each row (m,), the same rows for all methods.
        accuracy: share of right answers; None for regressions.
        stored_bytes: size of its version's tensors.
    """

    method: str
    losses: np.ndarray
    accuracy: float | None
    stored_bytes: int

    @property
    def loss(self) -> float:
        """Mean loss in nats."""
        return float(self.losses.mean())

    @property
    def interval(self) -> tuple[float, float] | None:
        """95% interval of the mean loss; None for a single row."""
        return mean_interval(self.losses)


@dataclass(frozen=True)
class Choice:
    """The method to publish, and the reason, in a sentence for the report."""

    method: str
    reason: str


def least(tried: Sequence[Tried]) -> Tried:
    """Return the method with the smallest mean loss; of equal ones the smallest in bytes."""
    return min(tried, key=lambda one: (one.loss, one.stored_bytes))


def nothing_to_gain(tried: Sequence[Tried]) -> str | None:
    """Return why to try no further method, in a sentence; None to continue.

    1. There are fewer than 16 rows, too few to decide.
    2. 90% or more are already right.

    Args:
        tried: methods tried so far, in order, at least one.
    """
    rows, best = len(tried[0].losses), least(tried)
    if rows < FEWEST_ROWS:
        return f"{rows} rows are too few to tell whether another method is better."
    if best.accuracy is not None and best.accuracy >= GOOD:
        return f"{best.method} gets {best.accuracy:.0%} of {rows} rows right, so there is little to gain."
    return None


def cheapest(tried: Sequence[Tried], errors: float = WITHIN) -> Choice:
    """Return the smallest method in bytes with a loss within so many standard errors of the best, on the same rows.

    Of several that are about as small, it is the one with the smallest loss.
    """
    best = least(tried)
    within = [one for one in tried if one is best or _within(one, best, errors)]
    fewest = min(one.stored_bytes for one in within)
    chosen = least([one for one in within if one.stored_bytes <= AS_CHEAP * fewest])
    if chosen is best:
        others = f", and no clearly smaller one is within {_IN_WORDS} of it" if len(tried) > 1 else ""
        return Choice(best.method, f"{best.method} has the lowest loss, {best.loss:.3f} nats{others}.")
    behind, error = paired(chosen.losses, best.losses)
    return Choice(
        chosen.method,
        f"{best.method} has the lowest loss, {best.loss:.3f} nats; {chosen.method} is {behind:.3f} behind it, within "
        f"{_IN_WORDS} ({WITHIN * error:.3f}), and takes {chosen.stored_bytes:,} bytes instead of "
        f"{best.stored_bytes:,}.",
    )


def _within(one: Tried, best: Tried, errors: float) -> bool:
    behind, error = paired(one.losses, best.losses)
    return behind <= errors * error
