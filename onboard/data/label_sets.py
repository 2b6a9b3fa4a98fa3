"""Rows with any number of labels: convert each row's list to a set of the task's labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from onboard.data.problems import Finding, Problem, Problems, preview
from onboard.data.rows import LabelColumn, LabelledRow
from onboard.data.settled import LabelOptions, Rows, Settled
from onboard.domain.counting import counted
from onboard.domain.dataset import Label, label_key
from onboard.domain.label_set import MULTILABEL, in_order_of, set_text

_NAMED: Final = 10  # labels listed in a message
_FORCED: Final = "--kind multilabel"


def settle_sets(
    splits: Mapping[str, Rows],
    labels: tuple[Label, ...],
    origins: Mapping[str, LabelColumn],
    reason: str,
    asked: LabelOptions,
    problems: Problems,
) -> Settled:
    """Return every row with the set of its labels. Collects problems.

    Args:
        splits: usable rows by split, "train" first.
        origins: file and label column of each split, for the problems.
        reason: why the rows are treated like this.
        asked: the requested kind and labels.
    """
    settled: dict[str, Rows] = {}
    findings: list[Finding] = []
    for split, rows in splits.items():
        if asked.kind != MULTILABEL:
            _report_mixed(rows, origins[split], problems)
        settled[split], strays = _with_sets(rows, labels)
        if asked.unknown == "drop":
            findings += _dropped(len(strays), split)
        else:
            known_from = "declared with --labels" if asked.declared else "known from training"
            _report_strays(strays, origins[split], labels, known_from, problems)
        findings += _repeated(rows, split)
    if not problems.count and splits["train"]:
        _require_something_to_learn(settled["train"], origins["train"], problems)
    return Settled(MULTILABEL, reason, labels, None, None, settled, tuple(findings))


def _with_sets(rows: Rows, labels: Sequence[Label]) -> tuple[Rows, Rows]:
    """Return the rows with their sets, and the rows with an unknown label."""
    known = {label_key(label) for label in labels}
    good: Rows = []
    strays: Rows = []
    for row in rows:
        if all(label_key(label) in known for label in row.labels):
            members = in_order_of(labels, row.labels)
            good.append(row._replace(label=set_text(members), members=members))
        else:
            strays.append(row)
    return good, strays


def _report_mixed(rows: Rows, origin: LabelColumn, problems: Problems) -> None:
    """Report if some rows have a list of labels and others a single label, at the first of the rarer kind."""
    single = [row for row in rows if row.members is None]
    listed = [row for row in rows if row.members is not None]
    if not single or not listed:
        return
    forms = {"a single label": single, "a list of labels": listed}
    (rare, few), (common, many) = sorted(forms.items(), key=lambda form: len(form[1]))
    message = (
        f"the row has {rare}, as {counted(len(few), 'row')} in all; {counted(len(many), 'row')} have {common}, the "
        f"first is row {many[0].number}"
    )
    remedy = f"Write the labels of every row in one way, or let single ones stand for lists of one: {_FORCED}"
    problems.add(Problem("mixed_labels", message, origin.file, few[0].number, few[0].line, origin.field, remedy))


def _dropped(rows: int, split: str) -> list[Finding]:
    if not rows:
        return []
    message = f"{counted(rows, 'row')} of the {split} split with unknown labels: dropped."
    return [Finding("unknown_labels", message, rows, "Add training rows of these labels.")]


def _report_strays(
    strays: Rows, origin: LabelColumn, labels: Sequence[Label], known_from: str, problems: Problems
) -> None:
    """Report every label that is not one of `labels`, at its first row."""
    known = {label_key(label) for label in labels}
    unknown = [(label, row) for row in strays for label in row.labels if label_key(label) not in known]
    counts = Counter(label_key(label) for label, _ in unknown)
    firsts: dict[str, LabelledRow] = {}
    for label, row in unknown:
        firsts.setdefault(label_key(label), row)
    shown = ", ".join(preview(label_key(label)) for label in labels[:_NAMED]) + (", …" if len(labels) > _NAMED else "")
    remedy = "Correct the rows, or drop them: --unknown-labels drop"
    for key, row in firsts.items():
        message = f"the label {preview(key)} ({counted(counts[key], 'row')}) is not {known_from}: {shown}"
        problems.add(Problem("unknown_label", message, origin.file, row.number, row.line, origin.field, remedy))


def _repeated(rows: Rows, split: str) -> list[Finding]:
    repeated = [row for row in rows if len({label_key(label) for label in row.labels}) < len(row.labels)]
    if not repeated:
        return []
    message = (
        f"{counted(len(repeated), 'row')} of the {split} split with a label that is listed more than once, first row "
        f"{repeated[0].number}: counted once."
    )
    return [Finding("repeated_labels", message, len(repeated), "List each label of a row once.")]


def _require_something_to_learn(train: Rows, origin: LabelColumn, problems: Problems) -> None:
    present = {label_key(label) for row in train for label in row.labels}
    message = ""
    if not present:
        message = "has no label in any row: there is nothing to learn"
    elif len(present) < 2:
        message = f"has only the label {next(iter(present))}: a task with several labels per text needs at least two"
    elif len({row.label for row in train}) < 2:
        message = "has the same labels in every row: there is nothing to learn"
    if message:
        remedy = "Add rows of at least two labels."
        if len(present) == 1:
            remedy = "Add rows of another label, or write this one as two classes without --kind multilabel."
        problems.add(Problem("one_label", message, origin.file, remedy=remedy))
