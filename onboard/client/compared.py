"""Two versions side by side, as the client returns them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from onboard.client.document import Document
    from onboard.domain.dataset import Label
    from onboard.domain.report import MetricsJson, Splits


@dataclass(frozen=True, slots=True)
class PairedComparison:
    """The later version against the earlier one, on held-out rows that neither was trained on.

    Args:
        verdict: better, worse, no significant difference, or not enough evidence.
        rows: that both answered.
        newly_right, newly_wrong: rows whose answer changed; None for a regression. p_value: McNemar, exact, two-sided.
        loss: "log_loss" or "squared_error"; increase: its mean change (below zero is better) with its 95% interval.
        decided_by: what a verdict "better" or "worse" rests on: "answers" or the loss; None for the others.
    """

    verdict: str
    rows: int
    newly_right: int | None
    newly_wrong: int | None
    p_value: float | None
    loss: str
    increase: float | None
    low: float | None
    high: float | None
    decided_by: str | None

    @classmethod
    def of(cls, document: Document) -> PairedComparison:
        """Read a comparison. Raises AnswerError."""
        return cls(
            document.read("verdict", str), document.read("rows", int), document.read_or_none("newly_right", int),
            document.read_or_none("newly_wrong", int), document.read_or_none("p_value", float),
            document.read("loss", str), document.read_or_none("increase", float), document.read_or_none("low", float),
            document.read_or_none("high", float), document.given("decided_by", str),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComparedVersion:
    """One of the two.

    Args:
        parent: what it started from.
        metrics: of the version, by split.
        shared: metrics on the rows that both answered; None where they cannot be compared.
        confusion: rows of those by true and by answered label (K, K), in the order of the labels; None without any, and
            for a regression.
    """

    version: int
    parent: str
    weak: bool
    metrics: Splits
    shared: MetricsJson | None
    confusion: Sequence[Sequence[int]] | None

    @classmethod
    def of(cls, document: Document) -> ComparedVersion:
        """Read one side of a comparison. Raises AnswerError."""
        return cls(
            document.read("version", int), document.read("parent", str), document.read("weak", bool),
            cast("Splits", document.part("metrics")), cast("MetricsJson | None", document.part_or_none("shared")),
            None if document["confusion"] is None else document.values_of("confusion", list),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlippedAnswers:
    """Rows of one label whose answer changed: what the earlier and the later version say, and how many rows."""

    label: Label
    earlier: Label
    later: Label
    count: int

    @classmethod
    def of(cls, document: Document) -> FlippedAnswers:
        """Read one kind of change. Raises AnswerError."""
        return cls(document.label("label"), document.label("a"), document.label("b"), document.read("count", int))


@dataclass(frozen=True, slots=True)
class ComparedVersions:
    """Two versions of a task; the verdict is about the later one.

    Args:
        better: whether it is significantly better; without evidence it is not.
        reason: the verdict, or why there is none, in one sentence.
        comparison: None where they cannot be compared.
        labels: in the order of the confusion; empty for a regression.
        flipped: changed answers, the most frequent first.
        rows_left_out: shared rows beyond the most that are answered.
        document: everything, as `onboard compare --json` prints it.
    """

    task: str
    earlier: ComparedVersion
    later: ComparedVersion
    better: bool
    reason: str
    comparison: PairedComparison | None
    labels: tuple[Label, ...]
    flipped: tuple[FlippedAnswers, ...]
    rows_left_out: int
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> ComparedVersions:
        """Read a comparison's document. Raises AnswerError."""
        paired = document.part_or_none("comparison")
        return cls(
            task=document.read("task", str),
            earlier=ComparedVersion.of(document.part("a")),
            later=ComparedVersion.of(document.part("b")),
            better=document.read("better", bool),
            reason=document.read("reason", str),
            comparison=None if paired is None else PairedComparison.of(paired),
            labels=document.labels("labels"),
            flipped=tuple(map(FlippedAnswers.of, document.parts("flipped"))),
            rows_left_out=document.read("rows_left_out", int),
            document=document,
        )
