"""Counts of jobs' transitions and the time in the previous state, for metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from onboard.domain.job import JobState

# Upper edges of the histograms' buckets. New ones can be inserted: earlier counts stay in their bucket.
BUCKET_SECONDS: Final = (
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 86400.0, math.inf,
)  # fmt: skip
NEW: Final = "new"  # "from" of a job that was just submitted
LOST: Final = "lost"  # "from" of a running job with an expired lease: it is claimed again, or given up


@dataclass(frozen=True, slots=True)
class Transition:
    """Jobs of one queue with the same transition after a similar time.

    Args:
        previous: the state that they left; NEW; or LOST.
        up_to_seconds: the bucket: their time in that state is at most this, and above the next lower edge.
        seconds: their total time in that state, without back-off before a new attempt.
    """

    previous: str
    state: JobState
    queue: str
    up_to_seconds: float
    count: int
    seconds: float
