"""Decide from the labels of all splits whether a task is a classification or a regression.

Strings, booleans and integers are classes. A regression is requested, or recognized by more than 20 distinct values
that are not integers (for strings, only if every label is a number). Labels keep their type. If any number has a
fraction, all numbers become floats, so that 1 and 1.0 of one scale are one label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from onboard.data.label_sets import settle_sets
from onboard.data.limits import MAX_NUMBER
from onboard.data.problems import Finding, Problem, Problems, preview
from onboard.data.rows import UNKNOWN_LABEL_CODES, LabelColumn
from onboard.data.settled import LabelOptions, Rows, Settled
from onboard.domain.counting import counted
from onboard.domain.dataset import Kind, Label, in_canonical_order, label_key, label_text
from onboard.domain.job import KindChoice
from onboard.domain.label_set import MULTILABEL
from onboard.domain.limits import MAX_LABELS

REGRESSION_KINDS: Final = 20  # more distinct non-integer values are a scale, not classes
_NUMBER: Final = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)
_TYPE_REMEDY: Final = "Use the same label type in both files: both as JSONL, or both as CSV, where all values are text."
_EXACT_INTEGERS: Final = 2**53  # larger integers are not exact as floats
_NAMED: Final = 10  # labels listed in a message


def settle_labels(
    splits: Mapping[str, Rows],
    seen: Sequence[Label],
    origins: Mapping[str, LabelColumn],
    asked: LabelOptions,
    problems: Problems,
) -> Settled:
    """Decide kind and label set from the training rows, and check the other splits. Collects problems.

    Args:
        splits: usable rows by split, "train" first.
        seen: every label of the training file, including rows with an invalid text.
        origins: file and label column of each split, for the problems.
    """
    kind, reason = _kind(splits["train"] or splits.get("test", []), asked.kind, asked.declared)
    if kind == "regression":
        return _regression(splits, origins, reason, problems)
    if kind == MULTILABEL:
        if too_many := _too_many(seen):
            problems.add(replace(too_many, file=origins["train"].file))
            return Settled(MULTILABEL, reason, (), None, None, splits)
        train_labels = in_canonical_order(seen)
        labels = _typed(asked.declared, train_labels) or train_labels
        return settle_sets(splits, labels, origins, reason, asked, problems)
    return _classification(splits, seen, origins, reason, asked, problems)


def number_of(label: Label) -> float | None:
    """Return the label as a number: numbers and numeric strings (not "nan" or "1_000"); else None."""
    if isinstance(label, bool):
        return None
    if isinstance(label, str):
        return float(label) if _NUMBER.fullmatch(label) else None
    return float(label)


def looks_like_scale(labels: Sequence[Label]) -> bool:
    """Return whether all labels are numbers (or all are numeric strings) and some have a fraction."""
    return bool(_fractions(labels))


def _kind(train: Rows, asked: KindChoice, declared: Sequence[Label]) -> tuple[Kind, str]:
    if asked != "auto":
        return asked, "as requested"
    if any(row.members is not None for row in train):
        return MULTILABEL, "rows have lists of labels"
    if declared:
        return "classification", "a label set was declared"
    fractions = len(_fractions([row.label for row in train]))
    if fractions > REGRESSION_KINDS:
        return "regression", f"{fractions} distinct values that are not integers"
    return "classification", "strings, booleans or integers" if not fractions else "few distinct values"


def _fractions(labels: Sequence[Label]) -> set[float]:
    """Return the distinct non-integer values; none unless all labels are numbers, or all are numeric strings."""
    if len({isinstance(label, str) for label in labels}) != 1:
        return set()
    values = [number_of(label) for label in labels]
    numbers = {value for value in values if value is not None}
    return {value for value in numbers if not value.is_integer()} if None not in values else set()


def _regression(
    splits: Mapping[str, Rows], origins: Mapping[str, LabelColumn], reason: str, problems: Problems
) -> Settled:
    settled: dict[str, Rows] = {}
    for split, rows in splits.items():
        settled[split] = []
        file, field = origins[split]
        for row in rows:
            value = number_of(row.label)
            if value is None or abs(value) > MAX_NUMBER:
                message = f"the label {preview(label_text(row.label))!r} is not a number"
                if value is not None:
                    message = f"the label {value} is beyond ±{MAX_NUMBER:g}"
                remedy = "Use a number in every row, or pass --kind classification."
                problems.add(Problem("not_a_number", message, file, row.number, row.line, field, remedy))
            else:
                settled[split].append(row._replace(label=value + 0.0))
    values = [float(row.label) for row in settled["train"]]
    if len(set(values)) < 2 and splits["train"] and not problems.count:
        message = f"has only the value {values[0]}: there is nothing to learn"
        problems.add(Problem("one_label", message, origins["train"].file, remedy="Add rows with at least two values."))
    low, high = (min(values), max(values)) if values else (None, None)
    return Settled("regression", reason, (), low, high, settled)


def _classification(
    splits: Mapping[str, Rows],
    seen: Sequence[Label],
    origins: Mapping[str, LabelColumn],
    reason: str,
    asked: LabelOptions,
    problems: Problems,
) -> Settled:
    splits, seen = _floats_unified(splits, seen, origins, problems)
    if too_many := _too_many(seen):
        problems.add(replace(too_many, file=origins["train"].file))
        return Settled("classification", reason, (), None, None, splits)
    train_labels = in_canonical_order(seen)
    labels = _typed(asked.declared, train_labels) or train_labels
    remedy = "Correct the rows, or add the label to --labels" if asked.declared else "Add training rows of this label"
    known = {label_key(label): label for label in labels}
    by_name: dict[str, Rows] = {}
    findings: list[Finding] = []
    for split, rows in splits.items():
        by_name[split] = [row for row in rows if label_key(row.label) in known]
        strays = [row for row in rows if label_key(row.label) not in known] if known else []
        if asked.unknown == "drop":
            written = _by_text(labels)
            retyped = [row for row in strays if label_text(row.label) in written]
            findings += _dropped(len(strays) - len(retyped), split, left=bool(by_name[split]))
            strays = retyped
        declared = split == "train" or (asked.declared and not splits["train"])
        known_from = "declared with --labels" if declared else "known from training"
        said = known_from, f"{remedy}, or drop them: --unknown-labels drop"
        _report_strays(strays, origins[split], labels, said, problems)
    present = sum(label_key(label) in known for label in train_labels)
    if present < 2 and seen and not problems.any_of({*UNKNOWN_LABEL_CODES, "unknown_label"}):
        message = f"has only the label {_named(train_labels)}: there is nothing to learn"
        problems.add(Problem("one_label", message, origins["train"].file, remedy="Add rows of at least two labels."))
    return Settled("classification", reason, labels, None, None, by_name, tuple(findings))


def _too_many(seen: Sequence[Label]) -> Problem | None:
    count = len(set(map(label_key, seen)))
    if count <= MAX_LABELS:
        return None
    message = f"has {count:,} distinct labels; the limit is {MAX_LABELS:,}"
    remedy = "Check the label field: --label-field NAME. For numbers: --kind regression"
    return Problem("too_many_labels", message, "", remedy=remedy)


def _dropped(rows: int, split: str, *, left: bool) -> list[Finding]:
    if not rows:
        return []
    none_left = "" if left else f"; no row of the {split} split is left"
    message = f"{counted(rows, 'row')} of the {split} split with unknown labels: dropped{none_left}."
    return [Finding("unknown_labels", message, rows, "Add training rows of these labels.")]


def _by_text(labels: Sequence[Label]) -> dict[str, Label]:
    """Return labels by spelling, to find labels that differ only in type."""
    return {label_text(label): label for label in reversed(labels)}


def _report_strays(
    strays: Rows, origin: LabelColumn, labels: Sequence[Label], said: tuple[str, str], problems: Problems
) -> None:
    """Report every label that is not one of `labels`, at its first row.

    Args:
        said: where those labels come from, and a remedy.
    """
    known_from, remedy = said
    firsts = {label_key(row.label): row for row in reversed(strays)}
    counts = Counter(label_key(row.label) for row in strays)
    written = _by_text(labels)
    for key, count in counts.items():
        first = firsts[key]
        rows = counted(count, "row")
        message = f"the label {_named([first.label])} ({rows}) is not {known_from}: {_named(labels)}"
        same = written.get(label_text(first.label))
        if same is not None:
            kinds = _type_of(first.label), _type_of(same)
            message = f"the label {_named([first.label])} ({rows}) is {kinds[0]}, the label {_named([same])} {kinds[1]}"
        problems.add(
            Problem(
                "unknown_label", message, origin.file, first.number, first.line, origin.field,
                remedy if same is None else _TYPE_REMEDY,
            )
        )  # fmt: skip


def _type_of(label: Label) -> str:
    return {str: "text", bool: "a boolean"}.get(type(label), "a number")


def _floats_unified(
    splits: Mapping[str, Rows], seen: Sequence[Label], origins: Mapping[str, LabelColumn], problems: Problems
) -> tuple[Mapping[str, Rows], Sequence[Label]]:
    """Return the labels, with all numbers as floats if one of them has a fraction."""
    labels = [*seen, *(row.label for rows in splits.values() for row in rows)]
    numeric = all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels)
    if not numeric or not any(isinstance(label, float) for label in labels):
        return splits, seen
    inexact = {label for label in labels if isinstance(label, int) and abs(label) > _EXACT_INTEGERS}
    for split, rows in splits.items():
        for row in rows if inexact else []:
            if row.label in inexact:
                message = f"the label {row.label} would be rounded, as other labels have a fraction"
                remedy = "Write the labels as strings, or all of them without a fraction."
                file, field = origins[split]
                problems.add(Problem("inexact_label", message, file, row.number, row.line, field, remedy))
    if inexact:
        return splits, seen
    floats = {split: [row._replace(label=float(row.label)) for row in rows] for split, rows in splits.items()}
    return floats, [float(label) for label in seen]


def typed_labels(declared: Sequence[Label], present: Sequence[Label]) -> tuple[Label, ...]:
    """Return declared labels; if no training row tells the type, with the types of other rows' labels."""
    _, unified = _floats_unified({}, present, {}, Problems())
    return _typed(declared, unified) if present else tuple(declared)


def _typed(declared: Sequence[Label], present: Sequence[Label]) -> tuple[Label, ...]:
    """Return declared labels with the types of the data: a command line can only pass "0" or "true"."""
    typed: dict[str, Label] = {}
    for written in declared:
        same = [label for label in present if label_key(label) == label_key(written)]
        alike = [label for label in present if isinstance(written, str) and _alike(label, written)]
        for label in same or alike or [_guessed(written, present)]:
            typed[label_key(label)] = label
    return tuple(typed.values())


def _alike(label: Label, written: str) -> bool:
    if isinstance(label, bool):
        return label_text(label) == written.strip().casefold()
    if isinstance(label, str):
        return label == written
    return number_of(written) == label


def _guessed(written: Label, present: Sequence[Label]) -> Label:
    """Return a declared label without rows, converted to the common type of the others."""
    value = number_of(written) if isinstance(written, str) else None
    types = {type(label) for label in present}
    if types == {float} and value is not None:
        return value
    if types == {int} and value is not None and value.is_integer():
        return int(value)
    if types == {bool} and str(written).casefold() in ("true", "false"):
        return str(written).casefold() == "true"
    return written


def _named(labels: Sequence[Label]) -> str:
    """Return the labels as JSON, which distinguishes 1 from "1"; at most ten."""
    shown = ", ".join(preview(label_key(label)) for label in labels[:_NAMED])
    return f"{shown}, …" if len(labels) > _NAMED else shown
