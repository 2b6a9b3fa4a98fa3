"""`onboard add`: add, correct or remove rows of a task, and learn a new version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.connection import connected
from cli.options import addition_options
from cli.output import AsJson, Document, emit, say_warnings
from onboard.contract.changes import change_sentence
from onboard.errors import InputError

_NONE: Mapping[str, Any] = {}


@addition_options
def add(
    task: Annotated[str, typer.Argument(help="Name of a task.")],
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="File of labeled rows.")] = None,
    dataset: Annotated[
        Path | None, typer.Option(metavar="FILE", help="FILE, as an option instead of an argument.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show the stages and wait for the version.")] = False,
    as_json: AsJson = False,
    options: Mapping[str, Any] = _NONE,
) -> None:
    """Add rows to a task, correct labels with --replace, or remove rows with --remove, and learn a new version."""
    if (file is None) == (dataset is None):
        raise InputError("rows-file-count", field="dataset", task=task)
    with connected() as service:
        document = service.add(task, file or dataset, **options).document
        say_warnings(document)
        job = {name: document[name] for name in ("job", "state", "task", "change")}
        if wait:
            from cli.watch import wait_for

            wait_for(service, job["job"], as_json)
        else:
            emit(job, as_json, lambda: _sentences(job))


def _sentences(job: Document) -> str:
    return (
        f"{change_sentence(job['change'])}\njob {job['job']} is {job['state']} for task {job['task']}\n"
        f"onboard jobs watch {job['job']}"
    )
