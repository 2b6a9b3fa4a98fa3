"""`onboard check FILE`: the checks and a time estimate. Nothing is queued, nothing is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import remote_client
from cli.output import AsJson, Document, emit
from onboard.domain.job import KindChoice
from onboard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType
    from rich.table import Table

    from onboard.jobs.submission import Order

_LABELS_SHOWN = 20
_VALIDATION = {
    "submitted": "the validation file",
    "held_out": "{held_out:,} rows held out of training",
    "cross_validated": "cross-validation: so few rows all train",
    "none": "none: too few rows, or one of every label; add rows, or --validation FILE",
}


def check(
    file: Annotated[
        str, typer.Argument(help="JSONL, CSV, TSV or Parquet file (.gz may follow), or hf://NAME[/CONFIG].")
    ],
    task: Annotated[str | None, typer.Option(help="Name of the task; default: the file's stem.")] = None,
    validation: Annotated[Path | None, typer.Option(help="File with the validation split.")] = None,
    test: Annotated[Path | None, typer.Option(help="File with the test split.")] = None,
    unlabelled: Annotated[
        Path | None, typer.Option(help="File of texts, of which a report would name those to label next.")
    ] = None,
    kind: Annotated[str, typer.Option(help="auto, classification or regression.")] = "auto",
    labels: Annotated[str, typer.Option(help="The label set, A,B,…; labels outside it are errors.")] = "",
    text_field: Annotated[list[str] | None, typer.Option(help="Field of the text; twice for pairs.")] = None,
    label_field: Annotated[str | None, typer.Option(help="Field of the label.")] = None,
    shots: Annotated[int | None, typer.Option(help="Training rows in total, drawn balanced.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of that draw.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check a dataset and estimate the time of its job. Nothing is queued."""
    from onboard.jobs.submission import Order

    order = Order(
        dataset=file, task=task, validation=validation, test=test, unlabelled=unlabelled,
        kind=require_kind(kind), labels=labels, text_field=text_field or [], label_field=label_field, shots=shots,
        seed=seed,
    )  # fmt: skip
    require_order(order)
    document = _checked(order)
    emit(document, as_json, lambda: _shown(document))


def require_kind(kind: str) -> KindChoice:
    """The `--kind` flag's value. Raises InputError when it is none."""
    match kind:
        case "auto" | "classification" | "regression":
            return kind
    raise InputError(f"{kind!r} is not a kind of task.", "Use one of auto, classification, regression.", kind=kind)


def require_order(order: Order) -> None:
    """What can be told without reading a row, before anything is opened or sent. Raises InputError."""
    from onboard.jobs.submission import split_labels

    _ = order.name
    split_labels(order.labels)


def _checked(order: Order) -> Document:
    with remote_client() as client:
        if client is not None:
            from cli.remote import check

            return check(client, order)
    from onboard.jobs.submission import check as check_here
    from onboard.settings import Settings

    return check_here(order, Settings().base)


def _shown(report: Document) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    facts.add_column()
    facts.add_column(overflow="fold")
    for what, value in _facts(report).items():
        facts.add_row(Text(what, style="bold"), Text(value))
    labels = [_label_table(report["labels"])] if report["labels"] else []
    warnings = [
        Text.assemble(("warning ", "yellow"), finding["message"], " ", (finding["remedy"], "dim"))
        for finding in report["warnings"]
    ]
    return Group(facts, *labels, *warnings, Text("Ready: nothing was queued.", style="green"))


def _facts(report: Document) -> dict[str, str]:
    splits = [f"{rows:,} {split}" for split, rows in report["rows"].items() if rows or split == "train"]
    facts = {
        "task": report["task"],
        "kind": f"{report['kind']} ({report['kind_reason']})",
        "fields": f"{' + '.join(report['fields']['text'])} → {report['fields']['label']}",
        "rows": ", ".join(splits),
    }
    if report["kind"] == "regression":
        facts["range"] = f"{report['low']} to {report['high']}"
    validation, characters = report["validation"], report["characters"]
    facts["validation"] = _VALIDATION[validation["method"]].format(held_out=validation["held_out"])
    facts["text"] = f"{characters['mean']:,.0f} characters a row, {characters['longest']:,} the longest"
    facts["digest"] = report["digest"]
    facts["time"] = f"about {_duration(report['estimated_seconds'])} on a laptop if the hypernetwork is not tuned"
    return facts


def _label_table(labels: Sequence[Document]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("label", "words", "rows")
    for label in labels[:_LABELS_SHOWN]:
        table.add_row(Text(json.dumps(label["label"], ensure_ascii=False)), Text(label["word"]), f"{label['train']:,}")
    if len(labels) > _LABELS_SHOWN:
        table.add_row(f"and {len(labels) - _LABELS_SHOWN:,} more", "", "")
    return table


def _duration(seconds: int) -> str:
    return f"{seconds} seconds" if seconds < 120 else f"{round(seconds / 60)} minutes"
