"""How often jobs went from one state to another, and how long they had been in the former: what metrics count."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from onboard.domain.job import JobState

# Upper edges of the histograms' buckets. New ones may be put in between: what was counted before stays in its own.
BUCKET_SECONDS: Final = (
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0, math.inf,
)  # fmt: skip
NEW: Final = "new"  # "from" of a job that was just submitted
LOST: Final = "lost"  # "from" of a running job whose lease ran out: it is claimed again, or given up


@dataclass(frozen=True, slots=True)
class Transition:
    """Jobs of one queue that did the same after about the same time.

    Args:
        previous: the state that they left; NEW; or LOST.
        up_to_seconds: the bucket: they had been in that state for at most so long, and longer than the next lower edge.
        count: how many.
        seconds: how long they had been in that state, together; time that they had to wait before a new attempt
            is not in it.
    """

    previous: str
    state: JobState
    queue: str
    up_to_seconds: float
    count: int
    seconds: float
