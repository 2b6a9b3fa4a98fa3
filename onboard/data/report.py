"""The report on a dataset that passed the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from onboard.contract.checks import CheckedLabel, DatasetFields, DatasetReport, TextLengths, ValidationRows
from onboard.data.limits import FEWEST_FOLDED_ROWS
from onboard.data.problems import Finding
from onboard.data.snapshot import digest
from onboard.data.splits import holdout, is_folded
from onboard.domain.dataset import Dataset, Example, Kind, label_key
from onboard.domain.label_set import all_labels


def report_on(
    dataset: Dataset,
    words: Sequence[str],
    findings: Iterable[Finding],
    fields: DatasetFields,
    seed: int,
    *,
    source: str,
    kind_reason: str,
    revision: str | None = None,
    rows_read: dict[str, int] | None = None,
) -> DatasetReport:
    """Return the report on a dataset.

    Args:
        words: label words in the order of the labels.
        fields: columns that the texts and labels came from.
        source: readable origin of the rows.
        rows_read: usable rows by split before some were dropped; None if none were.
    """
    everything = (*dataset.train, *dataset.validation, *dataset.test)
    lengths = [len(row.text_a) + len(row.text_b or "") for row in everything]
    rows = {"train": len(dataset.train), "validation": len(dataset.validation), "test": len(dataset.test)}
    return DatasetReport(
        source=source,
        revision=revision,
        kind=dataset.kind,
        kind_reason=kind_reason,
        fields=fields,
        rows_read=rows if rows_read is None else rows_read,
        rows=rows,
        labels=_label_rows(dataset, words),
        low=dataset.low,
        high=dataset.high,
        characters=TextLengths(mean=round(sum(lengths) / max(1, len(lengths)), 1), longest=max(lengths, default=0)),
        validation=_validation_of(dataset, seed),
        warnings=tuple(finding.to_document() for finding in findings),
        digest=digest(dataset),
    )


def _label_rows(dataset: Dataset, words: Sequence[str]) -> tuple[CheckedLabel, ...]:
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


def _validation_of(dataset: Dataset, seed: int) -> ValidationRows:
    if dataset.validation:
        return ValidationRows(method="submitted", held_out=0)
    if held := len(holdout(dataset, seed).validation):
        return ValidationRows(method="held_out", held_out=held)
    folded = is_folded(dataset) and len(dataset.train) >= FEWEST_FOLDED_ROWS
    return ValidationRows(method="cross_validated" if folded else "none", held_out=0)


def _counts(kind: Kind, rows: tuple[Example, ...]) -> Counter[str]:
    return Counter(label_key(label) for label in all_labels(kind, rows))
