"""What a job's document says of the readout that answers beside what was trained. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class ReadoutJson(TypedDict, total=False):
    """Whether a closed-form readout of the frozen encoder answers beside what was trained, and what it adds.

    asked: "never" or "auto"; share: of the answer that is the readout's; 0 where it is left out, and `reason` says why.
    before, after: mean loss in nats of what was trained alone and of both, on so many `rows` of the `evidence`
        ("held-out rows" or "rows that were predicted without themselves"); absent where there are none.
    """

    asked: str
    share: float
    reason: str
    before: float
    after: float
    evidence: str
    rows: int


class ProvisionalJson(TypedDict, total=False):
    """The provisional version of a job, a readout alone, and whether the job confirmed it or published a better one.

    version: its number. confirmed: whether it is the job's final version; `reason` says why.
    start: the embedding that the training started from which did not make a better version; null of all others.
    before, after: mean loss in nats of the readout alone and of the version with an embedding, on so many `rows` left
        out; low, high: the 95% interval of the paired difference, below zero is better. Absent where no rows can tell.
    """

    version: int
    confirmed: bool
    reason: str
    start: str | None
    before: float
    after: float
    low: float
    high: float
    rows: int
