"""Which texts of a pool an order takes next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.labelling.plan import APART, MARGIN, RANDOM, SHORTLIST, SPREAD, UNCERTAIN
from onboard.statistics.label_order import SURE, farthest_first, margin, uncertainty


@dataclass(frozen=True)
class Pool:
    """A task's texts and their known labels.

    Args:
        features: (n, h), rooted and centred.
        probabilities: (n, K), what the readout of the labels so far answers.
        labelled: places that have a label.
        random: draws.
    """

    features: np.ndarray
    probabilities: np.ndarray
    labelled: Sequence[int]
    random: np.random.Generator

    @property
    def waiting(self) -> np.ndarray:
        """Places without a label, ascending."""
        return np.setdiff1d(np.arange(len(self.features)), np.array(self.labelled, dtype=np.int64))


def taken(order: str, pool: Pool, count: int) -> list[int]:
    """The places (at most `count`) that the order labels next."""
    waiting = pool.waiting
    if order == RANDOM:
        return [int(place) for place in pool.random.permutation(waiting)[:count]]
    answers = pool.probabilities[waiting]
    if order == UNCERTAIN:
        return [int(place) for place in waiting[np.argsort(-uncertainty(answers), kind="stable")[:count]]]
    if order == MARGIN:
        return [int(place) for place in waiting[np.argsort(margin(answers), kind="stable")[:count]]]
    if order == APART:
        return _apart(waiting, answers, pool, count)
    assert order == SPREAD
    known = pool.features[list(pool.labelled)]
    return [int(waiting[row]) for row in farthest_first(pool.features[waiting], count, known)]


def _apart(waiting: np.ndarray, answers: np.ndarray, pool: Pool, count: int) -> list[int]:
    """Of the most uncertain texts those that differ, as `onboard.train.labelling.suggested` chooses them."""
    ranked = np.argsort(-uncertainty(answers), kind="stable")
    doubtful = ranked[answers[ranked].max(1) <= SURE]
    shortlist = (doubtful if len(doubtful) >= count else ranked)[: SHORTLIST * count]
    return [int(waiting[shortlist[row]]) for row in farthest_first(pool.features[waiting[shortlist]], count)]
