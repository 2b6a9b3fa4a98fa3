"""`onboard check FILE`: checks a dataset and estimates the time. It queues and writes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cli.connection import connected
from cli.options import check_options
from cli.output import AsJson, Document, emit, table
from cli.standard_input import STANDARD_INPUT, readable
from onboard.domain.submission import Submission, asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from cli.columns import Columns

_LABELS_SHOWN = 20
_VALIDATION = {
    "submitted": "the validation file",
    "held_out": "{held_out:,} rows held out of training",
    "cross_validated": "cross-validation: so few rows all train",
    "none": "none: too few rows, or one of every label; add rows, or --validation FILE",
}
_NO_ROWS = "none: the task starts from its labels alone; --test FILE measures it"


@check_options()
def check(submission: Submission, as_json: AsJson = False) -> None:
    """Check a dataset, or labels without rows, and estimate the duration of its job. Queues nothing."""
    require_names(submission)
    with connected(register=False) as service, readable(submission) as read:
        document = service.check(**asked(read)).document
    if submission.dataset is not None:
        document["source"] = str(submission.dataset)
    emit(document, as_json, lambda: _shown(document))


def require_names(submission: Submission) -> None:
    """Check the names without reading rows, before anything is opened or sent. Raises InputError."""
    from onboard.jobs.submission import split_labels, task_name

    if str(submission.dataset) != STANDARD_INPUT:
        task_name(submission)
    split_labels(submission.labels)


def _shown(report: Document) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = Table.grid(padding=(0, 2))
    facts.add_column()
    facts.add_column(overflow="fold")
    for name, value in _facts(report).items():
        facts.add_row(Text(name, style="bold"), Text(value))
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
    if report.get("metric"):
        facts["metric"] = report["metric"]
    if not report["fields"]["text"]:
        del facts["fields"]
    validation, characters = report["validation"], report["characters"]
    facts["validation"] = _VALIDATION[validation["method"]].format(held_out=validation["held_out"])
    facts["text"] = f"{characters['mean']:,.0f} characters a row, {characters['longest']:,} the longest"
    facts["digest"] = report["digest"]
    basis = report.get("estimate_basis", "on a laptop")
    facts["time"] = f"about {_duration(report['estimated_seconds'])} {basis} if the hypernetwork is not tuned"
    tuned = report.get("estimated_seconds_tuned")  # services of earlier releases do not send it
    facts["time"] += f", about {_duration(tuned)} if it is" if tuned else ""
    first = report.get("estimated_seconds_first")
    facts["time"] += f"; a first version after about {_duration(first)}" if first else ""
    if not report["rows"]["train"]:
        facts |= {"validation": _NO_ROWS, "time": f"about {_duration(report['estimated_seconds'])} on a laptop"}
    return facts


def _label_table(labels: Sequence[Document]) -> Columns:
    rows = [
        (json.dumps(label["label"], ensure_ascii=False), label["word"], f"{label['train']:,}")
        for label in labels[:_LABELS_SHOWN]
    ]
    more = [(f"and {len(labels) - _LABELS_SHOWN:,} more", "", "")] if len(labels) > _LABELS_SHOWN else []
    heads = ("label", "words", "rows")
    return table(heads, [*rows, *more], folded=heads[:2])


def _duration(seconds: int) -> str:
    return f"{seconds} seconds" if seconds < 120 else f"{round(seconds / 60)} minutes"
