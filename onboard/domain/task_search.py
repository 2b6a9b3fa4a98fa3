"""A search for tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from onboard.domain.dataset import label_text
from onboard.domain.report import LOWER_IS_BETTER, METRICS
from onboard.domain.task import EmbeddingVersion, Task
from onboard.errors import InputError


@dataclass(frozen=True, slots=True)
class TaskSearch:
    """A search for tasks; fields that are None are ignored.

    Args:
        label: one of its labels, as text.
        kind: classification or regression.
        metric: name of a metric that its latest version has, measured on its test rows, else on its validation rows.
        at_least: minimum of the metric; for log_loss and mse the maximum.
        weak: whether the latest version is weak.
        name: part of its name.
        shipped: whether it came with a base.
        names: it is one of these.
    """

    label: str | None = None
    kind: str | None = None
    metric: str | None = None
    at_least: float | None = None
    weak: bool | None = None
    name: str | None = None
    shipped: bool | None = None
    names: frozenset[str] | None = None

    def __post_init__(self) -> None:
        """Raise InputError for a search that could match nothing or would be ignored."""
        known = sorted({name for names in METRICS.values() for name in names})
        if self.metric is not None and self.metric not in known:
            raise InputError("unknown-metric-of-search", metric=self.metric, known=list(known))
        if self.at_least is not None and not math.isfinite(self.at_least):
            raise InputError("bound-not-finite", at_least=self.at_least)
        if self.at_least is not None and self.metric is None:
            raise InputError("bound-without-metric")

    @property
    def by_row(self) -> bool:
        """Whether the row of a task is sufficient, without its labels and its latest version."""
        return self == TaskSearch(name=self.name, shipped=self.shipped)

    def fits(self, task: Task, latest: EmbeddingVersion | None) -> bool:
        """Return whether a task with this latest version matches."""
        if self.label is not None and self.label not in map(label_text, task.labels):
            return False
        if self.names is not None and task.name not in self.names:
            return False
        if (self.name or "") not in task.name or self.shipped not in (None, task.source):
            return False
        if self.kind is not None and task.kind != self.kind:
            return False
        if self.weak is not None and (latest is None or latest.weak != self.weak):
            return False
        return self.metric is None or (latest is not None and self._good(latest))

    def _good(self, latest: EmbeddingVersion) -> bool:
        assert self.metric is not None
        measured = latest.metrics.get("test") or latest.metrics.get("validation") or {}
        value = (measured.get(self.metric) or {}).get("value")
        if value is None or self.at_least is None:
            return value is not None
        return bool(value <= self.at_least if self.metric in LOWER_IS_BETTER else value >= self.at_least)
