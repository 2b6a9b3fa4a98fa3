"""What the labels of a dataset are taken for, and what is asked of them."""

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
    """What the labels are: the kind and why, the class labels in order or the range, and the rows of each split."""

    kind: Kind
    reason: str
    labels: tuple[Label, ...]
    low: float | None
    high: float | None
    splits: Mapping[str, Rows]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of the labels.

    Args:
        kind: auto, or the requested kind.
        declared: the label set as declared, in its order; empty means whatever training has.
        unknown: what becomes of rows whose label is not in the label set.
    """

    kind: KindChoice
    declared: Sequence[Label]
    unknown: UnknownLabels = "refuse"
