"""A job that answers files: its shards, which workers claim one by one, and their progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from onboard.domain.counting import counted
from onboard.domain.forecast import TimeLeft

MAX_SHARD_ATTEMPTS: Final = 5  # attempts per shard before its job fails
RATE_SECONDS: Final = 300.0  # window of the rate
_FEWEST_SECONDS: Final = 5.0  # minimum time to measure a rate


@dataclass(frozen=True, slots=True)
class ShardClaim:
    """The right to answer a shard until its lease expires.

    Args:
        job: id of the job.
        number: number of the shard, from 0.
        attempt: number of claims: the fencing token.
    """

    job: str
    number: int
    attempt: int


@dataclass(frozen=True, slots=True)
class ShardsStanding:
    """The progress of a job's shards.

    Args:
        rows, shards: totals.
        rows_done, shards_done: those that are written.
        recent_rows: rows written within `window_seconds`, without those found at the start.
        window_seconds: length of the window, which starts with the attempt at the earliest.
        workers: number of workers that hold a shard.
        lost: a shard that has used up its attempts; None if there is none.
        error: error document of a shard that cannot be answered; None if there is none.
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
        """The rate; None if not yet known."""
        if self.window_seconds < _FEWEST_SECONDS or not self.recent_rows:
            return None
        return self.recent_rows / self.window_seconds

    @property
    def left(self) -> TimeLeft:
        """Return the remaining time at that rate."""
        rate = self.rows_per_second
        if rate is None:
            return TimeLeft(None, "no shard is written yet")
        return TimeLeft((self.rows - self.rows_done) / rate, f"the rate of the last {self.window_seconds:,.0f} s")

    @property
    def sentence(self) -> str:
        """Return a readable summary."""
        rate = self.rows_per_second
        speed = "" if rate is None else f", {rate:,.0f} a second"
        return f"{self.rows_done:,} of {self.rows:,} rows{speed}, by {counted(self.workers, 'worker')}"
