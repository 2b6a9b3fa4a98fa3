"""The report on a dataset that passed the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from onboard.contract.checks import CheckedLabel
from onboard.data.limits import FEWEST_FOLDED_ROWS
from onboard.data.problems import Finding
from onboard.data.splits import holdout, is_folded
from onboard.domain.dataset import Dataset, Example, Kind, label_key
from onboard.domain.label_set import all_labels

ValidationMethod = Literal["submitted", "held_out", "cross_validated", "none"]


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of the checks, JSON-compatible by `to_json`.

    Args:
        source: file or hub name, as given.
        revision: commit of a hub dataset, else None.
        kind: classification or regression, for the reason in `kind_reason`.
        text_fields: columns of the texts; `label_field` likewise.
        rows_read: usable rows by split, before duplicates, conflicts and shared rows were dropped.
        rows: used rows by split.
        labels: class labels with words and rows; empty for regression.
        low: smallest training value of a regression, else None; `high` likewise.
        mean_characters: of the rows of all splits; `longest_characters` likewise.
        validation: whether the validation split was submitted, is held out, or is replaced by cross-validation.
        held_out: number of training rows that are held out for validation.
        warnings: warnings.
        digest: identity of the dataset to train on.
    """

    source: str
    revision: str | None
    kind: Kind
    kind_reason: str
    text_fields: tuple[str, ...]
    label_field: str
    rows_read: dict[str, int]
    rows: dict[str, int]
    labels: tuple[CheckedLabel, ...]
    low: float | None
    high: float | None
    mean_characters: float
    longest_characters: int
    validation: ValidationMethod
    held_out: int
    warnings: tuple[Finding, ...]
    digest: str

    def to_json(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible document."""
        return {
            "source": self.source,
            "revision": self.revision,
            "kind": self.kind,
            "kind_reason": self.kind_reason,
            "fields": {"text": list(self.text_fields), "label": self.label_field},
            "rows_read": self.rows_read,
            "rows": self.rows,
            "labels": [label.to_json() for label in self.labels],
            "low": self.low,
            "high": self.high,
            "characters": {"mean": round(self.mean_characters, 1), "longest": self.longest_characters},
            "validation": {"method": self.validation, "held_out": self.held_out},
            "warnings": [finding.to_json() for finding in self.warnings],
            "digest": self.digest,
        }


def label_rows(dataset: Dataset, words: Sequence[str]) -> tuple[CheckedLabel, ...]:
    """Return every class label with its words, given in the order of the labels, and its rows by split."""
    train, validation, test = (
        _counts(dataset.kind, rows) for rows in (dataset.train, dataset.validation, dataset.test)
    )
    return tuple(
        CheckedLabel(
            label=label,
            word=word,
            train=train[label_key(label)],
            validation=validation[label_key(label)],
            test=test[label_key(label)],
        )
        for label, word in zip(dataset.labels, words, strict=True)
    )


def validation_of(dataset: Dataset, seed: int) -> tuple[ValidationMethod, int]:
    """Return the method of validation, and the number of training rows that it takes."""
    if dataset.validation:
        return "submitted", 0
    if held := len(holdout(dataset, seed).validation):
        return "held_out", held
    folded = is_folded(dataset) and len(dataset.train) >= FEWEST_FOLDED_ROWS
    return "cross_validated" if folded else "none", 0


def _counts(kind: Kind, rows: tuple[Example, ...]) -> Counter[str]:
    return Counter(label_key(label) for label in all_labels(kind, rows))
