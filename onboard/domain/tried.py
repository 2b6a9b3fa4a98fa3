"""What a job's document says of the methods that `--method auto` tried. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class TriedJson(TypedDict, total=False):
    """One method.

    method: its name; the base's own is the embedding with its readout, and the tuned hypernetwork where that is kept.
    loss: mean in nats on the rows of the evidence, with its 95% interval; null where it came to nothing.
    behind: mean loss above that of the least one, on the same rows; error: the standard error of that; 0 of the least.
    bytes: of the numbers that its version would store. trained: how many numbers it trained.
    seconds: that it took; null of a readout alone, which the default makes anyway.
    reason: why it came to nothing.
    """

    method: str
    loss: float | None
    low: float | None
    high: float | None
    behind: float | None
    error: float | None
    bytes: int | None
    trained: int | None
    seconds: float | None
    reason: str | None


class MethodsJson(TypedDict, total=False):
    """Which method was published, and what it was chosen from.

    reason: why this one; stopped: why no further one was tried.
    evidence: "held-out rows" or "rows that were predicted without themselves", so many `rows`; null where none are left
        to compare with.
    tried: the cheapest first.
    """

    chosen: str
    reason: str
    stopped: str
    evidence: str | None
    rows: int
    tried: list[TriedJson]
