"""Versions measured on rows: one on those of a file, or two side by side."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from onboard.api.schemas.versions import Label, Metrics


class Side(BaseModel):
    """One of two versions that are compared. shared: its metrics on the shared rows; confusion: true × predicted."""

    version: int
    method: str
    stored_bytes: int | None
    embedding_digest: str
    dataset_digest: str
    parent: str
    weak: bool
    metrics: Metrics
    shared: Metrics | None
    confusion: list[list[int]] | None


class PairedComparison(BaseModel):
    """The later version against the earlier one; `increase` of the loss with its 95% interval, below zero is better.

    `decided_by`: "answers" or the loss, for the verdicts better and worse.
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
    decided_by: str | None = None


class Flipped(BaseModel):
    """Rows of one label whose answer changed from `a` to `b`."""

    label: Label
    a: Label
    b: Label
    count: int


class FlippedRow(BaseModel):
    """A row whose answer changed from `a` to `b`, with the beginnings of its texts."""

    text: str
    text_b: str | None
    label: Label
    label_before: Annotated[
        Label | None,
        Field(description="Its other label in the dataset of `a`, if any; no verdict counts it then."),
    ]
    a: Label
    b: Label


class ComparisonDocument(BaseModel):
    """Two versions on rows that neither was trained on, or on cross-validated ones; the verdict is about `b`."""

    task: str
    a: Side
    b: Side
    better: bool
    reason: str
    evidence: Annotated[
        Literal["held-out", "file", "cross-validated", "training"] | None,
        Field(
            description="Rows that neither was trained on, held out or of the file; training rows that models without "
            "them answered; or training rows, on which only changed answers are listed."
        ),
    ]
    worth: Annotated[str | None, Field(description="How far weaker evidence than unseen rows can be trusted.")]
    comparison: PairedComparison | None
    labels: list[Label]
    flipped: list[Flipped]
    flipped_rows: Annotated[list[FlippedRow], Field(description="At most 50.")]
    relabeled: Annotated[int, Field(description="Shared rows whose label changed; no verdict counts them.")]
    rows_left_out: Annotated[int, Field(description="Shared rows beyond the most that are answered.")]


class Commonest(BaseModel):
    """The commonest label of the rows, and the share of rows that always answering it would get right."""

    label: Label
    share: float


class MistakenRow(BaseModel):
    """A row that was answered wrongly, with the beginnings of its texts."""

    text: str
    text_b: str | None
    label: Label
    answer: Label
    probability: float


class EvaluationDocument(BaseModel):
    """A version measured on the rows of a file that it was not trained on."""

    task: str
    version: int
    weak: bool
    kind: str
    rows: Annotated[int, Field(description="That were answered.")]
    rows_left_out: Annotated[int, Field(description="Rows beyond the most that are answered.")]
    rows_trained_on: Annotated[int, Field(description="Left out: the version was trained on them.")]
    reason: str
    metrics: Metrics
    labels: list[Label]
    confusion: Annotated[list[list[int]] | None, Field(description="True by answered label; null for a regression.")]
    commonest: Commonest | None
    mistakes: Annotated[list[MistakenRow], Field(description="The surest first; at most 50.")]
    warnings: Annotated[list[dict[str, Any]], Field(description="What was left out of the file.")]
