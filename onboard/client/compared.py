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
class FlippedRow:
    """A row whose answer changed, with the beginnings of its texts.

    Args:
        label_before: its label in the earlier version's dataset, where that is another one; else None.
    """

    text: str
    text_b: str | None
    label: Label
    label_before: Label | None
    earlier: Label
    later: Label

    @classmethod
    def of(cls, document: Document) -> FlippedRow:
        """Read a row. Raises AnswerError."""
        before = None if document["label_before"] is None else document.label("label_before")
        return cls(
            document.read("text", str), document.read_or_none("text_b", str), document.label("label"), before,
            document.label("a"), document.label("b"),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComparedVersions:
    """Two versions of a task; the verdict is about the later one.

    Args:
        better: whether it is significantly better; without evidence it is not.
        reason: the verdict, or why there is none, in one sentence.
        evidence: "held-out" or "file" for rows that neither was trained on; "cross-validated" for training rows that
            were answered by models without them; "training" where only changed answers to training rows are listed.
        worth: how far weaker evidence can be trusted; else None.
        comparison: None where they cannot be compared.
        labels: in the order of the confusion; empty for a regression.
        flipped: changed answers, the most frequent first; flipped_rows: the rows, 50 at most.
        relabeled: shared rows whose label changed, which no verdict counts.
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
    evidence: str | None
    worth: str | None
    flipped_rows: tuple[FlippedRow, ...]
    relabeled: int
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> ComparedVersions:
        """Read a comparison's document. Raises AnswerError."""
        paired = document.part_or_none("comparison")
        rows = document.parts("flipped_rows") if "flipped_rows" in document else ()  # of earlier services
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
            evidence=document.given("evidence", str),
            worth=document.given("worth", str),
            flipped_rows=tuple(map(FlippedRow.of, rows)),
            relabeled=document.given("relabeled", int) or 0,
            document=document,
        )


@dataclass(frozen=True, slots=True)
class EvaluatedVersion:
    """A version measured on the rows of a file that it was not trained on.

    Args:
        rows: that were answered; rows_left_out: more of them; rows_trained_on: that the version was trained on.
        reason: how good it is, in a sentence or two.
        metrics: by name, each with value, low, high and n; empty without rows.
        labels: in the order of the confusion, which has a row for each true label; both empty for a regression.
        document: everything, as `onboard evaluate --json` prints it; `mistakes` lists rows that were answered wrongly.
    """

    task: str
    version: int
    weak: bool
    rows: int
    rows_left_out: int
    rows_trained_on: int
    reason: str
    metrics: MetricsJson
    labels: tuple[Label, ...]
    confusion: Sequence[Sequence[int]] | None
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> EvaluatedVersion:
        """Read an evaluation's document. Raises AnswerError."""
        return cls(
            task=document.read("task", str),
            version=document.read("version", int),
            weak=document.read("weak", bool),
            rows=document.read("rows", int),
            rows_left_out=document.read("rows_left_out", int),
            rows_trained_on=document.read("rows_trained_on", int),
            reason=document.read("reason", str),
            metrics=cast("MetricsJson", document.part("metrics")),
            labels=document.labels("labels"),
            confusion=None if document["confusion"] is None else document.values_of("confusion", list),
            document=document,
        )
