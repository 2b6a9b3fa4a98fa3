"""How long jobs should wait by a queueing model, and what their rows say."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def modelled_waits(arrivals: Sequence[float], services: Sequence[float], servers: int) -> list[float]:
    """Waiting times of a queue with several servers, first come first served (G/G/c), computed event by event.

    Args:
        arrivals: seconds, ascending.
        services: seconds that each job occupies a server.
        servers: how many there are; all are free at the beginning.
    """
    free_at = [0.0] * servers
    waits = []
    for arrived, seconds in zip(arrivals, services, strict=True):
        begins = max(arrived, free_at[0])
        heapq.heapreplace(free_at, begins + seconds)
        waits.append(begins - arrived)
    return waits


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
