"""The interpretation of a dataset's labels, and the requested one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onboard.data.problems import Finding
from onboard.data.rows import LabelledRow
from onboard.domain.dataset import Kind, Label
from onboard.domain.job import KindChoice, UnknownLabels

Rows = list[LabelledRow]


@dataclass(frozen=True, slots=True)
class Settled:
    """The interpretation of labels: kind and reason, the class labels in order or the range, and the rows of each
    split.
    """

    kind: Kind
    reason: str
    labels: tuple[Label, ...]
    low: float | None
    high: float | None
    splits: Mapping[str, Rows]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelOptions:
    """The requested interpretation of labels.

    Args:
        declared: the declared label set, in order; empty uses that of the training rows.
        unknown: what to do with rows with a label outside the label set.
    """

    kind: KindChoice
    declared: Sequence[Label]
    unknown: UnknownLabels = "refuse"
