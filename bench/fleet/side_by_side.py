"""What tunings of one base lose to each other, event by event: behind a slot, side by side, and judged in batches.

The guard's verdict on the same step is the same on every head. Workers are never short.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

BATCHES: Final = "side by side, judged in batches"


@dataclass(frozen=True)
class Lengths:
    """Seconds of the parts of a tuned job: before the tuning, the tuning, the guard on the first head and on a later
    one, and what follows.
    """

    before: float
    tune: float
    guard: float
    again: float
    after: float


@dataclass(frozen=True)
class Outcome:
    """The end of one tuning.

    Args:
        lost: seconds that it took longer than alone on its base.
        judgements: by the guard.
        kept: whether its step became the head.
        given_up: whether it was not kept although the guard accepted it.
    """

    lost: float
    judgements: int
    kept: bool
    given_up: bool = False


def behind_slot(arrivals: Sequence[float], accepted: Sequence[bool], lengths: Lengths) -> list[Outcome]:
    """One after another: who finds the slot taken waits, and repeats the stages before if the head moved meanwhile."""
    free_at, moved_at, outcomes = 0.0, float("-inf"), []
    for began, kept in zip(arrivals, accepted, strict=True):
        ready = began + lengths.before
        taken = max(ready, free_at)
        repeated = lengths.before if moved_at > began else 0.0
        free_at = taken + repeated + lengths.tune + lengths.guard + lengths.after
        moved_at = free_at if kept else moved_at
        outcomes.append(Outcome(taken - ready + repeated, 1, kept))
    return outcomes


def moved_on(arrivals: Sequence[float], accepted: Sequence[bool], lengths: Lengths, most: int) -> list[Outcome]:
    """Every step is judged on the head that is there then; at most `most` times more if it moves during that."""
    order, head = count(), 0
    due = [(began + lengths.before + lengths.tune, next(order), place, 0) for place, began in enumerate(arrivals)]
    judging: dict[int, int] = {}  # the head that each is judged on
    outcomes: list[Outcome] = [Outcome(0.0, 1, kept=False)] * len(arrivals)
    heapq.heapify(due)
    while due:
        now, _, place, judgements = heapq.heappop(due)
        if place in judging:
            step = Outcome(max(0.0, judgements - 1) * (lengths.again + lengths.after), judgements, kept=False)
            if not accepted[place]:
                outcomes[place] = step
                continue
            if judging[place] == head:
                head += 1
                outcomes[place] = Outcome(step.lost, judgements, kept=True)
                continue
            if judgements > most:
                outcomes[place] = Outcome(step.lost, judgements, kept=False, given_up=True)
                continue
        judging[place] = head
        seconds = (lengths.again if judgements else lengths.guard) + lengths.after
        heapq.heappush(due, (now + seconds, next(order), place, judgements + 1))
    return outcomes


def in_batches(arrivals: Sequence[float], accepted: Sequence[bool], lengths: Lengths) -> list[Outcome]:
    """Steps that were accepted on a head that moved wait for the running batch; the next one judges their sum.

    The guard accepts every sum of accepted steps, which is too good: together they may cost a task more than the
    margin.
    """
    order, head, waiting, batch = count(), 0, list[tuple[int, float]](), list[tuple[int, float]]()
    due = [(began + lengths.before + lengths.tune, next(order), place) for place, began in enumerate(arrivals)]
    judging: dict[int, int] = {}
    outcomes: list[Outcome] = [Outcome(0.0, 1, kept=False)] * len(arrivals)
    heapq.heapify(due)
    while due:
        now, _, place = heapq.heappop(due)
        if place < 0:  # the batch has been judged
            for member, since in batch:
                outcomes[member] = Outcome(now - since, 2, kept=True)
            head, batch = head + 1, []
        elif place not in judging:
            judging[place] = head
            heapq.heappush(due, (now + lengths.guard + lengths.after, next(order), place))
        elif accepted[place] and judging[place] == head and not batch:
            head += 1
            outcomes[place] = Outcome(0.0, 1, kept=True)
        elif accepted[place]:
            waiting.append((place, now))
        if waiting and not batch:
            batch, waiting = waiting, []
            heapq.heappush(due, (now + lengths.again + lengths.after, next(order), -1))
    return outcomes
