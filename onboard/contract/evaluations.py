"""Results of versions on rows: one version on the rows of a file, or two compared."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field

from onboard.contract.document import Document, Label, Metrics
from onboard.contract.document import later as added_later

Evidence = Literal["held-out", "file", "cross-validated", "training"]
Verdict = Literal["better", "worse", "no significant difference", "not enough evidence"]
Loss = Literal["log_loss", "squared_error"]
Decisive = Literal["answers", "log_loss", "squared_error"]
_LOSSES: Final = {"log_loss": "log-loss", "squared_error": "squared error"}
_ALL_SENT: Final = ConfigDict(json_schema_serialization_defaults_required=True)


class Side(Document):
    """One of two compared versions. shared: its metrics on the shared rows; confusion: true × predicted."""

    model_config = _ALL_SENT

    version: int
    method: str = added_later("")
    stored_bytes: int | None = added_later()
    embedding_digest: str
    dataset_digest: str
    parent: str
    weak: bool
    metrics: Metrics
    shared: Metrics | None
    confusion: tuple[tuple[int, ...], ...] | None


class PairedComparison(Document):
    """The later version compared with the earlier one; `increase` of the loss with its 95% interval, a negative value
    is better.

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

    def sentence(self, later: str, earlier: str, rows: str) -> str:
        """The verdict with the test that decided it, in one sentence.

        Args:
            later, earlier: names of the two versions.
            rows: description of its rows, without their number.
        """
        on_rows = f"on {self.rows:,} {rows if self.rows != 1 else rows.replace('rows', 'row', 1)}"
        if self.verdict == "not enough evidence":
            return f"There is not enough evidence {on_rows}."
        loss = _LOSSES[self.loss]
        if self.decided_by is None:
            by = "" if self.newly_right is None else "by its answers or "
            return f"{later} is not significantly better or worse than {earlier} {by}by its {loss} {on_rows}."
        by = "answers" if self.decided_by == "answers" else loss
        return f"{later} is significantly {self.verdict} than {earlier} by its {by} {on_rows}: {self._numbers()}."

    def _numbers(self) -> str:
        """The numbers of the test that decides.

        If it is the test of the loss, also the numbers of the answers, because the verdict is not about them.
        """
        changed = f"{self.newly_right} newly right, {self.newly_wrong} newly wrong"
        if self.decided_by == "answers":
            return f"{changed} (McNemar p = {self.p_value:.2g})"
        by_loss = f"{self.increase:+.3g} ({self.low:+.3g} to {self.high:+.3g})"
        if self.newly_right is None:
            return by_loss
        return f"{by_loss}, {changed if self.newly_right or self.newly_wrong else 'though no answer changed'}"


class Flipped(Document):
    """Rows of one label that version `a` and version `b` answer differently."""

    label: Label
    earlier: Annotated[Label, Field(alias="a")]
    later: Annotated[Label, Field(alias="b")]
    count: int


class FlippedRow(Document):
    """A row that versions `a` and `b` answer differently, with the beginnings of its texts."""

    text: str
    text_b: str | None
    label: Label
    label_before: Annotated[
        Label | None,
        Field(description="Its label in the dataset of `a` if that differs; the verdict then ignores the row."),
    ]
    earlier: Annotated[Label, Field(alias="a")]
    later: Annotated[Label, Field(alias="b")]


class ComparisonDocument(Document):
    """Two versions, compared on rows that neither was trained on, or on cross-validated answers. The verdict is about
    `b`.
    """

    model_config = _ALL_SENT

    task: str
    earlier: Annotated[Side, Field(alias="a")]
    later: Annotated[Side, Field(alias="b")]
    better: bool
    reason: str
    evidence: Evidence | None = added_later(
        description="Rows that neither was trained on (held out, or of the file), cross-validated training rows, "
        "or training rows, for which only changed answers are listed."
    )
    worth: str | None = added_later(description="How reliable the evidence is, if it is weaker than unseen rows.")
    comparison: PairedComparison | None
    labels: tuple[Label, ...]
    flipped: tuple[Flipped, ...]
    flipped_rows: tuple[FlippedRow, ...] = added_later((), "At most 50.")
    relabeled: int = added_later(0, "Number of shared rows with a changed label; the verdict ignores them.")
    rows_left_out: Annotated[int, Field(description="Number of shared rows beyond the limit.")]

    @property
    def worse(self) -> bool:
        """Whether the later version is significantly worse."""
        return self.comparison is not None and self.comparison.verdict == "worse"


class Commonest(Document):
    """The most frequent label of the rows, and its share: the accuracy of always answering it."""

    label: Label
    share: float


class MistakenRow(Document):
    """A row with a wrong answer, and the beginnings of its texts."""

    text: str
    text_b: str | None
    label: Label
    answer: Label
    probability: float


class EvaluationDocument(Document):
    """The metrics of a version on rows of a file that it was not trained on."""

    model_config = _ALL_SENT

    task: str
    version: int
    weak: bool
    kind: str
    rows: Annotated[int, Field(description="Number of answered rows.")]
    rows_left_out: Annotated[int, Field(description="Number of rows beyond the limit.")]
    rows_trained_on: Annotated[
        int, Field(description="Number of rows left out because the version was trained on them.")
    ]
    reason: str
    metrics: Metrics
    labels: tuple[Label, ...]
    confusion: Annotated[
        tuple[tuple[int, ...], ...] | None, Field(description="Rows by true and answered label; null for a regression.")
    ]
    commonest: Commonest | None = added_later()
    mistakes: tuple[MistakenRow, ...] = added_later((), "Most certain first; at most 50.")
    warnings: tuple[dict[str, Any], ...] = added_later((), "Rows of the file that were left out.")
