"""The part of a job's document about the methods that `--method auto` tried. JSON throughout."""

from __future__ import annotations

from typing import TypedDict


class TriedJson(TypedDict, total=False):
    """One method.

    method: its name; the base's own is the embedding with its readout, and the tuned hypernetwork if that is kept.
    loss: mean in nats on the rows of the evidence, with its 95% interval; null if the method failed. behind: mean loss
    above that of the best, on the same rows; error: its standard error; 0 for the best. bytes: size of its version's
    tensors. trained: number of trained parameters. seconds: duration; null for a readout alone, which the default makes
    anyway. reason: why the method failed.
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
    evidence: "held-out rows" or "cross-validated rows", so many `rows`; null if none are left to
        compare on.
    tried: the cheapest first.
    """

    chosen: str
    reason: str
    stopped: str
    evidence: str | None
    rows: int
    tried: list[TriedJson]
