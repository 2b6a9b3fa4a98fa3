"""`onboard labels TASK`: a task's labels, listed, renamed, merged, deleted and described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, Document, emit, say_warnings, table
from onboard.contract.changes import change_sentence
from onboard.domain.dataset import label_text
from onboard.domain.label_change import LabelChange
from onboard.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

_USAGE = (
    "onboard labels TASK, onboard labels TASK rename A B, onboard labels TASK merge A B into C, "
    'onboard labels TASK delete A, or: onboard labels TASK describe A "what it means"'
)


def labels(
    task: Annotated[str, typer.Argument(help="Name of a task.")],
    change: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CHANGE]", help='rename A B, merge A B into C, delete A, or describe A "MEANING".'),
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Stop after the readout, without an embedding.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Show the stages and wait for the version.")] = False,
    as_json: AsJson = False,
) -> None:
    """List or change a task's labels. Each change makes a new version; no alias moves."""
    asked = parsed(change) if change else None
    with connected() as service:
        if asked is None:
            document = service.labels_document(task)
            emit(document, as_json, lambda: _listed(document))
            return
        changed = service.change_labels(task, asked, fast=fast)
        say_warnings(changed)
        changed.pop("warning", None)
        if wait and changed["job"] is not None:
            from cli.watch import wait_for

            wait_for(service, changed["job"], as_json)
            return
        emit(changed, as_json, lambda: _sentences(changed))


def parsed(words: Sequence[str]) -> LabelChange:
    """Parse a change of labels from the words of a command line. Raises InputError."""
    action, *named = words
    if action == "rename" and len(named) == 2:
        return LabelChange("rename", (named[0],), named[1])
    if action == "merge" and len(named) >= 4 and named[-2] == "into":
        return LabelChange("merge", tuple(named[:-2]), named[-1])
    if action == "delete" and len(named) == 1:
        return LabelChange("delete", (named[0],))
    if action == "describe" and len(named) == 2:
        return LabelChange("describe", (named[0],), description=named[1])
    raise InputError("label-change-unreadable", field="change", words=" ".join(words), usage=_USAGE)


def _listed(document: Document) -> RenderableType:
    rows = [
        (
            label_text(label["label"]),
            label["word"] or "",
            "" if label["rows"] is None else f"{label['rows']:,}",
            label["description"] or "",
        )
        for label in document["labels"]
    ]
    return table(("label", "word", "rows", "description"), rows)


def _sentences(changed: Document) -> str:
    said = change_sentence(changed["change"])
    if changed["job"] is None:
        reference = f"{changed['task']}@v{changed['version']}"
        return (
            f"{said}\n{reference} is published. Aliases stay where they are; to move one: "
            f"onboard promote {reference} --alias latest"
        )
    return f"{said}\njob {changed['job']} is {changed['state']}\nonboard jobs watch {changed['job']}"
