"""Read a file of rows for a task, and apply it to the task's dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onboard.contract.checks import DatasetFields, DatasetReport
from onboard.data.amended import Amended, with_rows, without_rows
from onboard.data.balance import bucket_finding, label_findings
from onboard.data.formats import FileProblems
from onboard.data.labelled import Takes, read_labelled
from onboard.data.lengths import cut_finding
from onboard.data.problems import Finding, Problem, Problems
from onboard.data.report import report_on
from onboard.data.texts import telling_texts
from onboard.data.verbaliser import Verbaliser, verbalise, words_finding
from onboard.domain.dataset import Dataset, Example
from onboard.domain.evaluation import Evaluation
from onboard.domain.label_set import all_labels, set_text
from onboard.errors import InputError

if TYPE_CHECKING:
    from onboard.data.lengths import CountTokens
    from onboard.domain.addition import Addition


@dataclass(frozen=True)
class RowFile:
    """The rows of a file, and warnings about omitted rows.

    Args:
        rows: in the order of the file; labels of rows to remove are ignored.
    """

    source: str
    rows: tuple[Example, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Words:
    """A base's tokenizer and verbalizer.

    Args:
        count_tokens: returns the tokens of a text or pair; None if unknown.
        verbaliser: returns labels' words; None uses the labels themselves.
    """

    count_tokens: CountTokens | None = None
    max_tokens: int = 0
    verbaliser: Verbaliser | None = None


def read_rows(asked: Addition, takes: Takes, *, hide_folders: bool = False) -> RowFile:
    """Read the rows to add, correct or remove.

    Args:
        asked: the file, and what to do with its rows.
        takes: the labels and the form of the task's texts.

    Raises:
        DatasetError: `data["problems"]` lists the problems: unknown labels, pairs for a task of single texts, …
        InputError: the source cannot be read.
    """
    if asked.remove:
        return _read_texts(asked, takes, hide_folders=hide_folders)
    labelled = Evaluation(asked.dataset, text_field=asked.text_field, label_field=asked.label_field)
    read = read_labelled(labelled, takes, hide_folders=hide_folders, new_labels=asked.new_labels)
    if not read.rows:
        raise InputError("rows-file-empty", field="dataset", file=str(read.source))
    return RowFile(read.source, read.rows, read.findings)


def amended(stored: Dataset, asked: Addition, file: RowFile) -> Amended:
    """Apply the rows of a file to the task's dataset. Raises InputError like `with_rows` and `without_rows`."""
    if asked.remove:
        return without_rows(stored, [(row.text_a, row.text_b) for row in file.rows])
    return with_rows(stored, file.rows, correct=asked.replace)


def takes_of(dataset: Dataset) -> Takes:
    """Return the labels of a dataset and the form of its texts, which is unknown without rows."""
    rows = dataset.train or dataset.validation or dataset.test
    return Takes(dataset.labels, dataset.low, dataset.high, dataset.pairs if rows else None, dataset.several_labels)


def report_of(dataset: Dataset, source: str, findings: tuple[Finding, ...], words: Words, seed: int) -> DatasetReport:
    """Return the report on a dataset that was made from a stored one.

    Args:
        source: readable origin of its rows.
        findings: warnings about the file and the change.
        words: tokenizer and verbalizer of the task's base.
    """
    everything = (*dataset.train, *dataset.validation, *dataset.test)
    label_words = (words.verbaliser or verbalise)(dataset.labels)
    warnings = (*findings, *_findings(dataset, everything, label_words, words))
    fields = DatasetFields(text=("text_a", "text_b") if dataset.pairs else ("text",), label="label")
    return report_on(dataset, label_words, warnings, fields, seed, source=source, kind_reason="as the task has it")


def _findings(
    dataset: Dataset, everything: tuple[Example, ...], label_words: tuple[str, ...], words: Words
) -> list[Finding]:
    findings: list[Finding | None] = []
    if dataset.kind == "regression":
        findings.append(bucket_finding([float(row.label) for row in dataset.train]))
    else:
        findings += label_findings(dataset.labels, all_labels(dataset.kind, dataset.train))
        findings.append(words_finding(dataset.labels, label_words) if words.verbaliser else None)
    if words.count_tokens is not None:
        findings.append(cut_finding(everything, words.count_tokens, words.max_tokens))
    return [finding for finding in findings if finding is not None]


def _read_texts(asked: Addition, takes: Takes, *, hide_folders: bool) -> RowFile:
    path, problems = Path(asked.dataset), Problems()
    name = path.name if hide_folders else str(path)
    rows = [tuple(row.values()) for row in telling_texts(path, tuple(asked.text_field), FileProblems(problems, name))]
    if rows and takes.pairs is not None and takes.pairs != (len(rows[0]) == 2):
        kinds = ("one text", "a pair of texts")
        message = f"has {kinds[len(rows[0]) - 1]} a row, the task takes {kinds[takes.pairs]}"
        problems.add(Problem("text_field", message, name, remedy="Name the fields of the texts: --text-field NAME"))
    problems.raise_if_any()
    unread = set_text(()) if takes.multilabel else ""
    return RowFile(name, tuple(Example(row[0], row[1] if len(row) > 1 else None, unread) for row in rows))
