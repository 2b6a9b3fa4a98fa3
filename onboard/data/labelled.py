"""Read labeled rows for an existing task, to measure its versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from onboard.data.duplicates import without_repeats
from onboard.data.formats import FileProblems
from onboard.data.labels import number_of, settle_labels
from onboard.data.located import FromHub, located
from onboard.data.parts import SplitFile
from onboard.data.problems import Finding, Problem, Problems, preview
from onboard.data.regression import BUCKETS
from onboard.data.rows import LabelColumn, LabelledRow, read_table
from onboard.data.settled import LabelOptions, Settled
from onboard.domain.counting import counted
from onboard.domain.dataset import Example, Kind, Label, label_key, label_text
from onboard.domain.evaluation import Evaluation
from onboard.domain.label_set import MULTILABEL

_PREFERRED: Final = ("test", "validation", "train")  # split of a folder or hub dataset to measure on


@dataclass(frozen=True, slots=True)
class Takes:
    """The inputs and answers of a task.

    Args:
        labels: labels of the version; empty for a regression.
        low, high: range of a regression, else None.
        pairs: whether a row has two texts; None if unknown.
        multilabel: whether a text may have several labels.
    """

    labels: tuple[Label, ...]
    low: float | None
    high: float | None
    pairs: bool | None
    multilabel: bool = False

    @property
    def kind(self) -> Kind:
        """Kind of the task."""
        if self.multilabel:
            return MULTILABEL
        return "classification" if self.labels else "regression"


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """Checked rows of a file without repeated texts, and warnings about omitted rows.

    Args:
        rows: in the order of the file.
    """

    source: str
    rows: tuple[Example, ...]
    findings: tuple[Finding, ...] = field(default=())


def read_labelled(
    asked: Evaluation, takes: Takes, *, hide_folders: bool = False, new_labels: bool | None = None
) -> CheckedRows:
    """Read a file with the labels of a task.

    Labels that are spelled like one of the task's labels are that label, as a CSV file has only texts.

    Args:
        takes: the inputs and answers of the task.
        new_labels: whether rows that are added to the task may have new labels; None for rows to measure on.

    Raises:
        DatasetError: `data["problems"]` lists the problems.
        InputError: the source cannot be read.
    """
    problems = Problems()
    path = Path(asked.dataset)
    with located(asked.dataset, path.name if hide_folders else str(path), {}, FromHub(None, None, keep=False)) as place:
        split = next((split for split in _PREFERRED if split in place.splits), "train")
        paths = place.splits[split]
        name = place.name_of(paths[0], hide_folders)
        parts = [_part(path, place.name_of(path, hide_folders), asked, place.class_names, takes.kind) for path in paths]
        parts = [part for part in parts if not part.is_empty] or parts
        source = place.source
    for part in parts:
        problems.merge(part.problems)
    rows = [row for part in parts for row in part.table.rows]
    rows = [row._replace(number=number) for number, row in enumerate(rows, start=1)] if len(parts) > 1 else rows
    fields = next((part.table.fields for part in parts if part.table.fields is not None), None)
    if fields is not None and takes.pairs is not None and takes.pairs != (len(fields.texts) == 2):
        kinds = ("one text", "pairs of texts")
        message = f"has {kinds[len(fields.texts) - 1]} a row, the task takes {kinds[takes.pairs]}"
        problems.add(Problem("text_field", message, name, remedy="Name the fields of the texts: --text-field NAME"))
    origin = LabelColumn(name, fields.label if fields else "")
    if new_labels is not None and takes.labels:
        rows, takes = _with_strangers(rows, origin, takes, new_labels, problems)
    settled = _settled(rows, origin, asked, takes, problems)
    step = 0.0 if takes.low is None or takes.high is None else (takes.high - takes.low) / (BUCKETS - 1)
    distinct, repeats = without_repeats(settled.splits["test"], "test", origin, step, problems)
    problems.raise_if_any()
    return CheckedRows(source, tuple(row.example() for row in distinct), (*settled.findings, *repeats))


def _part(
    path: Path, name: str, asked: Evaluation, class_names: Mapping[str, tuple[str, ...]], kind: Kind
) -> SplitFile:
    problems = Problems()
    text_fields = tuple(asked.text_field)
    table = read_table(path, FileProblems(problems, name), text_fields, asked.label_field, class_names, kind)
    return SplitFile(name, table, problems)


def _settled(
    rows: list[LabelledRow], origin: LabelColumn, asked: Evaluation, takes: Takes, problems: Problems
) -> Settled:
    """Return the rows with labels of the task; others are problems or dropped."""
    declared = LabelOptions(takes.kind, (), asked.unknown_labels)
    if takes.kind == MULTILABEL:
        as_written = _spelling(takes.labels)
        rows = [row._replace(members=tuple(map(as_written, row.labels))) for row in rows]
    elif takes.labels:
        rows = _as_written(rows, takes.labels)
    return settle_labels(
        {"train": [], "test": rows}, takes.labels, {"train": origin, "test": origin}, declared, problems
    )


def _as_written(rows: list[LabelledRow], labels: tuple[Label, ...]) -> list[LabelledRow]:
    """Return the rows with the task's labels in place of labels with the same spelling."""
    as_written = _spelling(labels)
    return [row._replace(label=as_written(row.label)) for row in rows]


def _spelling(labels: Sequence[Label]) -> Callable[[Label], Label]:
    """Return a function that maps a label of a file to the task's label with the same spelling, or itself."""
    task_keys = {label_key(label) for label in labels}
    by_text = {label_text(label): label for label in reversed(labels)}
    return lambda label: label if label_key(label) in task_keys else by_text.get(label_text(label), label)


def _with_strangers(
    rows: list[LabelledRow], origin: LabelColumn, takes: Takes, welcome: bool, problems: Problems
) -> tuple[list[LabelledRow], Takes]:
    """Return the rows and the task's future labels: new ones are problems unless allowed."""
    if not takes.multilabel:
        rows = _as_written(rows, takes.labels)
    as_written, task_keys = _spelling(takes.labels), {label_key(label) for label in takes.labels}
    rows_by_label = [(label, row) for row in rows for label in map(as_written, row.labels)]
    firsts = {
        label_key(label): (label, row) for label, row in reversed(rows_by_label) if label_key(label) not in task_keys
    }
    counts = Counter(label_key(label) for label, _ in rows_by_label)
    are_numbers = all(number_of(label) is not None for label in takes.labels)
    for key, (label, row) in firsts.items():
        shown = repr(preview(label_text(label)))
        message = f"the task does not have the label {shown} ({counted(counts[key], 'row')})"
        remedy = "Correct the rows, or allow new labels: --new-labels"
        if welcome and not are_numbers and isinstance(label, float):
            message = f"the label {shown} is a number; the task's labels are classes"
            remedy = "Submit a task of this kind under another name: onboard submit FILE --task NAME"
        elif welcome:
            continue
        where = row.number, row.line, origin.field
        problems.add(Problem("unknown_label", message, origin.file, *where, remedy))
    strangers = tuple(label for label, _ in firsts.values())
    return rows, replace(takes, labels=(*takes.labels, *strangers))
