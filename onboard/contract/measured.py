"""Metrics with their intervals, as versions and jobs store them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from onboard.contract.document import Document, Label, Partial
from onboard.domain.counting import significant

if TYPE_CHECKING:
    from onboard.domain.label_scores import LabelScore

Estimate = Literal["cross-validated"]


class LabelScoreDocument(Document):
    """One label: its rows, how often it was predicted, and how often correctly.

    precision: share of its answers that are right; null if it was never predicted.
    recall: share of its rows that are predicted; null if it has no rows.
    f1: null without either.
    """

    label: Label
    rows: int
    answers: int
    right: int
    precision: float | None
    recall: float | None
    f1: float | None

    @classmethod
    def of_score(cls, score: LabelScore) -> Self:
        """Return the document of a label's scores."""
        shares = {name: significant(getattr(score, name)) for name in ("precision", "recall", "f1")}
        return cls.of(score, **shares)


class MetricDocument(Partial):
    """A metric with its 95% interval.

    value: accuracy, exact_match, lrap and F1 are shares (0…1), mcc and correlations −1…1, log_loss nats, mse squared
        label units; calibration_error 0…1: difference between the probability of an answer and the share that is right.
    low, high: ends of the interval; null if there are too few rows for one.
    n: rows it was measured on.
    note: explains an unexpected value (undefined and set to 0, …).
    estimate: "cross-validated" if every row was predicted by a model that had not seen it, although the published
        version has seen them all; absent if no part of the training has seen the rows.
    labels: with macro_f1 of a version: precision, recall, F1 and rows of each label; their mean F1 is the value.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int
    note: str | None = None
    estimate: Estimate | None = None
    labels: tuple[LabelScoreDocument, ...] | None = None


MetricsDocument = dict[str, MetricDocument]
"""By name of the metric."""

BaselinesDocument = dict[str, MetricsDocument]
"""By name of the baseline: "majority" and "tfidf_logistic_regression", or "mean" and "tfidf_ridge"."""
