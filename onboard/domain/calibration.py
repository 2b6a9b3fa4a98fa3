"""What a job's document says of how sure its answers sound. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class CalibrationJson(TypedDict):
    """The temperature of a version's probabilities, and how far they are from what is right with it and without.

    temperature: that probabilities are taken to the power of 1/T with; it moves no label.
    evidence, rows: what chose it, beside what is usual ("held-out rows" or "rows that were predicted without
        themselves"), and how many these are; 0 where there are none, and it is the usual one.
    before, after: expected calibration error by split, 0…1, at temperature 1 and at this one.
    """

    temperature: float
    evidence: str
    rows: int
    before: dict[str, float]
    after: dict[str, float]


class UnknownJson(TypedDict):
    """Which texts a version says are unlike its data.

    limit: squared distance, in the frozen encoder's features, to the nearest label's mean.
    false_alarms: share of `rows` rows of the task, left out of the means, that are beyond it.
    misses: share of `texts` texts of other kinds that are within it.
    digest: of the means.
    """

    limit: float
    false_alarms: float
    rows: int
    misses: float
    texts: int
    digest: str
