"""`onboard check FILE`: the checks and a time estimate. Nothing is queued, nothing is written."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from onboard.data.estimate import TOKENS_PER_CHARACTER, estimate_seconds
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.report import CheckReport
from onboard.data.task_name import check_task_name, task_name_of
from onboard.domain.job import KindChoice
from onboard.errors import InputError

_LABELS_SHOWN = 20
_VALIDATION = {
    "submitted": "the validation file",
    "held_out": "{held_out:,} rows held out of training",
    "cross_validated": "cross-validation: so few rows all train",
}


def check(
    file: Annotated[
        str, typer.Argument(help="JSONL, CSV, TSV or Parquet file (.gz may follow), or hf://NAME[/CONFIG].")
    ],
    task: Annotated[str | None, typer.Option(help="Name of the task; default: the file's stem.")] = None,
    validation: Annotated[Path | None, typer.Option(help="File with the validation split.")] = None,
    test: Annotated[Path | None, typer.Option(help="File with the test split.")] = None,
    kind: Annotated[str, typer.Option(help="auto, classification or regression.")] = "auto",
    labels: Annotated[str, typer.Option(help="The label set, A,B,…; labels outside it are errors.")] = "",
    text_field: Annotated[list[str] | None, typer.Option(help="Field of the text; twice for pairs.")] = None,
    label_field: Annotated[str | None, typer.Option(help="Field of the label.")] = None,
    shots: Annotated[int | None, typer.Option(help="Training rows in total, drawn balanced.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of that draw.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")] = False,
) -> None:
    """Check a dataset and estimate the time of its job. Nothing is queued."""
    name = check_task_name(task) if task is not None else task_name_of(file)
    options = ReadOptions(
        validation=validation,
        test=test,
        kind=require_kind(kind),
        labels=split_labels(labels),
        text_fields=tuple(text_field or ()),
        label_field=label_field,
        shots=shots,
        seed=seed,
    )
    report = read_dataset(file, options).report
    document = {"task": name, **report.to_json(), "estimated_seconds": _estimate(report)}
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        _show(name, report, document["estimated_seconds"])


def require_kind(kind: str) -> KindChoice:
    """The `--kind` flag's value. Raises InputError when it is none."""
    match kind:
        case "auto" | "classification" | "regression":
            return kind
    raise InputError(f"{kind!r} is not a kind of task.", "Use one of auto, classification, regression.", kind=kind)


def split_labels(text: str) -> tuple[str, ...]:
    """The `--labels` flag's value: labels between commas; one that holds a comma is quoted as in CSV."""
    if not text:
        return ()
    labels = tuple(label.strip() for label in next(csv.reader([text], skipinitialspace=True)))
    if not all(labels):
        raise InputError("--labels has an empty label.", "Write them between commas: --labels A,B", labels=list(labels))
    return labels


def _estimate(report: CheckReport) -> int:
    rows = report.rows
    mean_tokens = report.mean_characters * TOKENS_PER_CHARACTER
    held_out = report.held_out + rows["validation"] + rows["test"]
    return round(estimate_seconds(rows["train"] - report.held_out, mean_tokens, held_out))


def _show(name: str, report: CheckReport, seconds: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    facts = Table.grid(padding=(0, 2))
    facts.add_column()
    facts.add_column(overflow="fold")
    for what, value in _facts(name, report, seconds).items():
        facts.add_row(Text(what, style="bold"), Text(value))
    console.print(facts)
    if report.labels:
        console.print(_label_table(report))
    for finding in report.warnings:
        console.print(Text.assemble(("warning ", "yellow"), finding.message, " ", (finding.remedy, "dim")))
    console.print(Text("Ready: nothing was queued.", style="green"))


def _facts(name: str, report: CheckReport, seconds: int) -> dict[str, str]:
    splits = [f"{rows:,} {split}" for split, rows in report.rows.items() if rows or split == "train"]
    fields = f"{' + '.join(report.text_fields)} → {report.label_field}"
    facts = {"task": name, "kind": f"{report.kind} ({report.kind_reason})", "fields": fields, "rows": ", ".join(splits)}
    if report.kind == "regression":
        facts["range"] = f"{report.low} to {report.high}"
    facts["validation"] = _VALIDATION[report.validation].format(held_out=report.held_out)
    facts["text"] = f"{report.mean_characters:,.0f} characters a row, {report.longest_characters:,} the longest"
    facts["digest"] = report.digest
    facts["time"] = f"about {_duration(seconds)} on a laptop"
    return facts


def _label_table(report: CheckReport) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table("label", "words", "rows")
    for each in report.labels[:_LABELS_SHOWN]:
        table.add_row(Text(json.dumps(each.label, ensure_ascii=False)), Text(each.word), f"{each.train:,}")
    if len(report.labels) > _LABELS_SHOWN:
        table.add_row(f"and {len(report.labels) - _LABELS_SHOWN:,} more", "", "")
    return table


def _duration(seconds: int) -> str:
    return f"{seconds} seconds" if seconds < 120 else f"{round(seconds / 60)} minutes"
