"""The rule of `--method auto`: which methods are tried, when no further one is, and which of those tried is published.

All are judged by their losses on the same rows, none of which trained what answers them. How the rule was chosen stands
in docs/decisions/0022.
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
AS_CHEAP: Final = 1.1  # times the fewest bytes: less is worth no loss, as the 64 numbers beside a readout


@dataclass(frozen=True)
class Tried:
    """One method as it would be published.

    Args:
        method: its name.
        losses: nats of each row (m,), the same rows for all methods.
        accuracy: share of them whose answer is right; None of numbers.
        stored_bytes: of the numbers that its version would store.
    """

    method: str
    losses: np.ndarray
    accuracy: float | None
    stored_bytes: int

    @property
    def loss(self) -> float:
        """The mean, nats."""
        return float(self.losses.mean())

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its 95% interval; None of a single row."""
        return mean_interval(self.losses)


@dataclass(frozen=True)
class Choice:
    """The method that is published, and why, in a sentence for the report."""

    method: str
    reason: str


def least(tried: Sequence[Tried]) -> Tried:
    """The method with the least mean loss; of several the one that takes the fewest bytes."""
    return min(tried, key=lambda one: (one.loss, one.stored_bytes))


def nothing_to_gain(tried: Sequence[Tried]) -> str | None:
    """Why no further method is tried, in a sentence; None where one is.

    1. There are fewer than 16 rows: they could not tell.
    2. 90% or more are right already.

    Args:
        tried: in the order in which they were, at least one.
    """
    rows, best = len(tried[0].losses), least(tried)
    if rows < FEWEST_ROWS:
        return f"{rows} rows are too few to tell whether another method is better."
    if best.accuracy is not None and best.accuracy >= GOOD:
        return f"{best.method} gets {best.accuracy:.0%} of {rows} rows right: little is left to gain."
    return None


def cheapest(tried: Sequence[Tried], errors: float = WITHIN) -> Choice:
    """Of all whose loss is within so many standard errors of the least one's on the same rows: that of fewest bytes.

    Of several that are about as cheap it is the one with the least loss.
    """
    best = least(tried)
    within = [one for one in tried if one is best or _within(one, best, errors)]
    fewest = min(one.stored_bytes for one in within)
    chosen = least([one for one in within if one.stored_bytes <= AS_CHEAP * fewest])
    if chosen is best:
        others = f", and none that takes clearly fewer bytes is within {_IN_WORDS} of it" if len(tried) > 1 else ""
        return Choice(best.method, f"{best.method} has the least loss, {best.loss:.3f} nats{others}.")
    behind, error = paired(chosen.losses, best.losses)
    return Choice(
        chosen.method,
        f"{best.method} has the least loss, {best.loss:.3f} nats; {chosen.method} is {behind:.3f} behind it, within "
        f"{_IN_WORDS} ({WITHIN * error:.3f}), and takes {chosen.stored_bytes:,} bytes instead of "
        f"{best.stored_bytes:,}.",
    )


def _within(one: Tried, best: Tried, errors: float) -> bool:
    behind, error = paired(one.losses, best.losses)
    return behind <= errors * error
