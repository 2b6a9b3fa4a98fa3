"""The part of a job's document about its readout. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class ReadoutJson(TypedDict, total=False):
    """Whether a closed-form readout of the frozen encoder is part of the answer, and its benefit.

    asked: "never" or "auto"; share: share of the answer that is the readout's; 0 if it is left out, for the `reason`.
    before, after: mean loss in nats of the training alone and with the readout, on so many `rows` of the `evidence`
        ("held-out rows" or "cross-validated rows"); absent if there are none.
    """

    asked: str
    share: float
    reason: str
    before: float
    after: float
    evidence: str
    rows: int


class ProvisionalJson(TypedDict, total=False):
    """The provisional version of a job, a readout alone, and whether the job confirmed or replaced it.

    version: its number. confirmed: whether it is the job's final version, for the `reason`.
    start: the embedding from which the unsuccessful training started; null for all others.
    before, after: mean loss in nats of the readout alone and of the version with an embedding, on so many left-out
        `rows`; low, high: 95% interval of the paired difference (negative is better). Absent without such rows.
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
