"""The output of `onboard compare-methods --json`."""

from __future__ import annotations

from typing import Any

from onboard.contract.document import Document


class MethodResult(Document):
    """The result of a method.

    state: state of its job; "refused" if it was not queued. job, version: its job, and the published version.
    score: the deciding metric with its interval.
    weak: whether the version is not better than the most frequent answer.
    stored_bytes: size of the version's files. trained: number of trained task-specific parameters.
    seconds: of all stages together. memory_bytes: peak memory, including the base.
    error: why the method has no version; null if it has one.
    """

    method: str
    state: str
    job: str | None = None
    version: str | None = None
    score: dict[str, Any] | None = None
    weak: bool | None = None
    stored_bytes: int | None = None
    trained: int | None = None
    seconds: float | None = None
    memory_bytes: int | None = None
    error: str | None = None


class MethodResults(Document):
    """Methods on the same rows, with the same seed, in the requested order.

    task: of the versions. metric: the deciding metric, on the `split`; both are "" if nothing was measured.
    """

    task: str
    metric: str
    split: str
    results: tuple[MethodResult, ...]
