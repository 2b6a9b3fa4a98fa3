"""Change a dataset: add, correct or remove rows, or change labels; with warnings.

As within one file, two texts are the same if they differ only in case, whitespace or invisible characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from onboard.data.hashes import text_hash
from onboard.data.invisible import visible
from onboard.data.limits import MAX_EXAMPLES
from onboard.data.problems import Finding, preview
from onboard.data.regression import BUCKETS
from onboard.domain.counting import counted
from onboard.domain.dataset import (
    Dataset,
    Example,
    Kind,
    Label,
    in_canonical_order,
    in_canonical_rows,
    label_key,
    label_text,
)
from onboard.domain.label_set import MULTILABEL, all_labels, in_order_of, labels_in, set_text
from onboard.errors import InputError

SPLITS: Final = ("train", "validation", "test")

Split = tuple[Example, ...]


@dataclass(frozen=True)
class Amended:
    """The new dataset, and what happened to the rows.

    Args:
        counts: numbers of rows by result: `added`, `replaced`, `removed`, `repeated`, `contradicted` and `missing`,
            without zeros.
    """

    dataset: Dataset
    counts: Mapping[str, int]
    findings: tuple[Finding, ...] = ()


@dataclass
class _Work:
    """Rows by split while they are changed."""

    stored: Dataset
    rows: dict[str, list[Example]] = field(init=False)
    places: dict[int, tuple[str, int]] = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.rows = {split: list(getattr(self.stored, split)) for split in SPLITS}
        self.places = {
            _alike(row): (split, place) for split in SPLITS for place, row in reversed([*enumerate(self.rows[split])])
        }

    def done(self, labels: Sequence[Label], findings: Iterable[Finding | None] = ()) -> Amended:
        """Return the result; for a regression, with the range of the new rows."""
        splits = {split: in_canonical_rows(rows) for split, rows in self.rows.items()}
        values = [float(row.label) for row in splits["train"]] if self.stored.kind == "regression" else []
        low, high = min(values, default=None), max(values, default=None)
        dataset = Dataset(self.stored.kind, tuple(labels), **splits, low=low, high=high)
        return Amended(dataset, dict(+self.counts), tuple(finding for finding in findings if finding is not None))


def with_rows(stored: Dataset, more: Sequence[Example], *, correct: bool = False) -> Amended:
    """Add training rows to the dataset.

    Existing rows are skipped. A row with an existing text and another label contradicts it: the stored label stays,
    unless labels are to be corrected.

    Args:
        stored: the current dataset.
        more: rows with labels that fit the kind of the task; new labels extend the label set.
        correct: replace the stored label by that of the new row, in any split.

    Raises:
        InputError: the rows change nothing.
    """
    work, labels = _Work(stored), _labels_with(stored, more)
    tolerance = 0.0 if stored.low is None or stored.high is None else (stored.high - stored.low) / (BUCKETS - 1)
    contradictions: list[tuple[Example, Example]] = []
    for row in _in_order(stored.kind, labels, more):
        place = work.places.get(_alike(row))
        if place is None:
            work.places[_alike(row)] = "train", len(work.rows["train"])
            work.rows["train"].append(row)
            work.counts["added"] += 1
            continue
        split, index = place
        present = work.rows[split][index]
        if _same_label(present, row, 0.0 if correct else tolerance):
            work.counts["repeated"] += 1
        elif correct:
            work.rows[split][index] = replace(present, label=row.label)
            work.counts["replaced"] += 1
        else:
            contradictions.append((present, row))
            work.counts["contradicted"] += 1
    if not (work.counts["added"] or work.counts["replaced"]):
        raise _unchanged(len(more), work.counts)
    return work.done(labels, [_repeated(work.counts["repeated"]), _contradicted(contradictions)])


def without_rows(stored: Dataset, texts: Sequence[tuple[str, str | None]]) -> Amended:
    """Remove the rows with these texts, in every split.

    Raises:
        InputError: the dataset has none of them, a label would have no training row left, or all sets of labels that
            are left would be alike.
    """
    work, unwanted = _Work(stored), {_hash(*text) for text in texts}
    missing = len(unwanted - work.places.keys())
    for split, rows in work.rows.items():
        kept = [row for row in rows if _alike(row) not in unwanted]
        work.counts["removed"] += len(rows) - len(kept)
        work.rows[split] = kept
    work.counts["missing"] = missing
    if not work.counts["removed"]:
        raise InputError("rows-not-in-task", field="dataset", texts=counted(len(unwanted), "text"))
    _require_rows_of_every_label(stored, work.rows["train"])
    _require_different_sets(stored, work.rows["train"])
    return work.done(stored.labels, [_missing(missing)])


def with_labels(stored: Dataset, become: Mapping[str, Label | None], labels: Sequence[Label]) -> Amended:
    """Change the labels of the dataset.

    Args:
        become: new label by `label_key`; None removes the rows, or in sets of labels the label alone.

    Raises:
        InputError: all sets of labels would be alike.
    """
    work = _Work(stored)
    for split, rows in work.rows.items():
        kept = []
        for row in rows:
            label = _label_after(stored.kind, row.label, become, labels)
            if label is None:
                work.counts["removed"] += 1
                continue
            work.counts["replaced"] += label_key(label) != label_key(row.label)
            kept.append(replace(row, label=label))
        work.rows[split] = kept
    _require_different_sets(stored, work.rows["train"])
    return work.done(labels)


def new_label_order(stored: Sequence[Label], labels: Sequence[Label]) -> tuple[Label, ...]:
    """Return labels in canonical order if the stored ones were; otherwise unchanged."""
    canonical = tuple(stored) == in_canonical_order(stored)
    return in_canonical_order(labels) if canonical else tuple(labels)


def is_superset(more: Dataset, stored: Dataset) -> bool:
    """Return whether a dataset has all rows of another one in the same splits, and more training rows or labels."""
    if more.kind != stored.kind or not {*map(label_key, stored.labels)} <= {*map(label_key, more.labels)}:
        return False
    for split in SPLITS:
        rows, before = ({*getattr(dataset, split)} for dataset in (more, stored))
        if not before <= rows or (split != "train" and rows != before):
            return False
    return len(more.train) > len(stored.train) > 0


def _in_order(kind: Kind, labels: Sequence[Label], rows: Sequence[Example]) -> Sequence[Example]:
    """Return the rows with their sets of labels in the order of the task's labels."""
    if kind != MULTILABEL:
        return rows
    return [replace(row, label=set_text(in_order_of(labels, labels_in(row.label)))) for row in rows]


def _label_after(kind: Kind, label: Label, become: Mapping[str, Label | None], labels: Sequence[Label]) -> Label | None:
    """Return the new label of a row, or its new set of labels; None if the row is removed."""
    if kind != MULTILABEL:
        return become.get(label_key(label), label)
    members = (become.get(label_key(member), member) for member in labels_in(label))
    return set_text(in_order_of(labels, [member for member in members if member is not None]))


def _alike(row: Example) -> int:
    return _hash(row.text_a, row.text_b)


def _hash(text_a: str, text_b: str | None) -> int:
    return text_hash(visible(text_a), None if text_b is None else visible(text_b))


def _same_label(present: Example, row: Example, tolerance: float) -> bool:
    if tolerance:
        return abs(float(present.label) - float(row.label)) <= tolerance
    return label_key(present.label) == label_key(row.label)


def _labels_with(stored: Dataset, more: Sequence[Example]) -> tuple[Label, ...]:
    if stored.kind == "regression":
        return stored.labels
    known = {label_key(label) for label in stored.labels}
    new = in_canonical_order(label for label in all_labels(stored.kind, more) if label_key(label) not in known)
    return new_label_order(stored.labels, (*stored.labels, *new))


def _unchanged(rows: int, counts: Mapping[str, int]) -> InputError:
    contradicted = counts.get("contradicted", 0)
    if contradicted:
        message = f"{counted(contradicted, 'row')} of {rows} contradict the stored labels, and none is new."
        remedy = "To correct the stored labels: onboard add TASK FILE --replace"
    else:
        message, remedy = f"The task already has all {counted(rows, 'row')} of the file.", "Add rows with new texts."
    return InputError(
        "rows-change-nothing", remedy=remedy, field="dataset", trouble=message, rows=rows, contradicted=contradicted
    )


def _require_rows_of_every_label(stored: Dataset, train: Sequence[Example]) -> None:
    """Raise InputError if a label, or a regression, loses all its training rows."""
    left = {label_key(label) for label in all_labels(stored.kind, train)}
    present = {label_key(label) for label in all_labels(stored.kind, stored.train)}
    lost = [label for label in stored.labels if label_key(label) in present - left]
    if lost:
        shown = ", ".join(repr(preview(label_text(label))) for label in lost[:3])
        raise InputError("label-without-rows-left", field="dataset", labels=lost, shown=shown)
    if stored.kind == "regression" and len(left) < 2:
        raise InputError("numbers-left-too-few", field="dataset")


def _require_different_sets(stored: Dataset, train: Sequence[Example]) -> None:
    """Raise InputError if all training rows have the same set of labels: there is nothing to learn."""
    if stored.kind == MULTILABEL and len({label_key(row.label) for row in train}) < 2:
        raise InputError("sets-left-alike", field="dataset")


def _repeated(count: int) -> Finding | None:
    if not count:
        return None
    return Finding("repeated_rows", f"{counted(count, 'row')} that the task already has: skipped.", count)


def _missing(count: int) -> Finding | None:
    if not count:
        return None
    message = f"{counted(count, 'text')} of the file that the task does not have: ignored."
    return Finding("unknown_rows", message, count)


def _contradicted(pairs: Sequence[tuple[Example, Example]]) -> Finding | None:
    if not pairs:
        return None
    message = f"{counted(len(pairs), 'row')} with a label that contradicts the task's label for the text: skipped."
    shown: tuple[dict[str, Any], ...] = tuple(
        {"text": preview(row.text_a), "label": row.label, "present": present.label}
        for present, row in pairs[:MAX_EXAMPLES]
    )
    return Finding("contradicted_rows", message, len(pairs), "To correct the stored labels, use --replace.", shown)
