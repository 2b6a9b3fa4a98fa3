"""A job over files: its shards, which many workers claim one by one, and how far they are together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.counting import counted
from onboard.domain.forecast import TimeLeft

MAX_SHARD_ATTEMPTS: Final = 5  # workers that a shard may cost before its job fails
RATE_SECONDS: Final = 300.0  # how far back the rate looks
_FEWEST_SECONDS: Final = 5.0  # before that a rate says nothing


@dataclass(frozen=True, slots=True)
class ShardClaim:
    """The right to answer a shard, until its lease runs out.

    Args:
        job: whose shard it is.
        number: which one, from 0.
        attempt: how often it was claimed: its fencing token.
    """

    job: str
    number: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ShardsStanding:
    """How far a job's shards are.

    Args:
        rows, shards: of all of them.
        rows_done, shards_done: of those that are written.
        recent_rows: of those that were written within `window_seconds`, not found there.
        window_seconds: how far back that looks: to the beginning of the attempt at most.
        workers: that hold a shard now.
        lost: a shard that cost as many workers as it may; None where there is none.
        error: the error document of a shard that cannot be answered; None where there is none.
    """

    rows: int
    shards: int
    rows_done: int
    shards_done: int
    recent_rows: int
    window_seconds: float
    workers: int
    lost: int | None = None
    error: dict[str, Any] | None = None

    @property
    def rows_per_second(self) -> float | None:
        """The rate; None where it is not known yet."""
        if self.window_seconds < _FEWEST_SECONDS or not self.recent_rows:
            return None
        return self.recent_rows / self.window_seconds

    @property
    def left(self) -> TimeLeft:
        """How long the rest takes at that rate."""
        rate = self.rows_per_second
        if rate is None:
            return TimeLeft(None, "no shard is written yet")
        return TimeLeft((self.rows - self.rows_done) / rate, f"the rate of the last {self.window_seconds:,.0f} s")

    @property
    def sentence(self) -> str:
        """The same for people."""
        rate = self.rows_per_second
        speed = "" if rate is None else f", {rate:,.0f} a second"
        return f"{self.rows_done:,} of {self.rows:,} rows{speed}, by {counted(self.workers, 'worker')}"
