"""The part of a job's document about calibration and novelty. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class CalibrationJson(TypedDict):
    """The temperature of a version's probabilities, and their calibration error with and without it.

    temperature: probabilities are raised to the power of 1/T; no label changes.
    evidence, rows: the rows that chose it ("held-out rows" or "cross-validated rows") and their
        number; 0 if there are none, and it is the default.
    before, after: expected calibration error by split, 0…1, at temperature 1 and at this one.
    """

    temperature: float
    evidence: str
    rows: int
    before: dict[str, float]
    after: dict[str, float]


class UnknownJson(TypedDict):
    """When a version treats texts as unlike its data.

    limit: squared distance, in the frozen encoder's features, to the nearest label's mean. false_alarms: share of
    `rows` rows of the task, outside the means, that exceed it. misses: share of `texts` texts of other kinds within it.
    digest: of the means.
    """

    limit: float
    false_alarms: float
    rows: int
    misses: float
    texts: int
    digest: str
