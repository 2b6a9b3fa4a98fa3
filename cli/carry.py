"""`onboard tasks carry`: move tasks from earlier hypernetworks to the head, unless the guard refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit, say, table
from onboard.errors import ConflictError, InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.contract.carrying import CarriedTask, CarriedTasks


def carry(
    task: Annotated[str | None, typer.Argument(help="Name of a task.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Carry every task that is not at the head.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Run the guard without changing anything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Carry the latest version to the head, as a new version; exit 4 if the guard refuses TASK."""
    if (task is None) != every:
        raise InputError("carry-without-task")
    with connected() as service:
        document = service.carry(task, dry_run=dry_run, on_page=_said)
    emit(document, as_json, lambda: _shown(document, task))
    if task is not None and document.refused:
        raise typer.Exit(ConflictError.exit_code)


def _said(page: CarriedTasks) -> None:
    """Print the progress of --all."""
    for outcome in page.carried + page.refused:
        result = "cleared" if outcome.version is None else f"v{outcome.version}"
        say(f"{outcome.task}: {result if outcome in page.carried else 'refused'}")


def _shown(document: CarriedTasks, task: str | None) -> RenderableType:
    from rich.console import Group

    if not document.carried and not document.refused:
        return f"{task} is already at the head." if task else "Every task is already at the head."
    rows = [
        (*_pins(outcome), f"v{outcome.version}" if outcome.version else "cleared", outcome.reason)
        for outcome in document.carried
    ]
    rows += [(*_pins(outcome), "stays", outcome.reason) for outcome in document.refused]
    advice = ["Refused tasks are served as before. Submit them again to learn them under the head."]
    shown = table(("task", "version", "hypernetwork", "becomes", "why"), rows, folded=("why",))
    return Group(shown, *(advice if document.refused else []))


def _pins(outcome: CarriedTask) -> tuple[str, str, str]:
    heads = f"v{outcome.hypernetwork_from} → v{outcome.hypernetwork_version}"
    return outcome.task, f"v{outcome.earlier_version}", heads
