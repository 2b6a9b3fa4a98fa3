"""`onboard tasks`: learned tasks and shipped source tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from cli.carry import carry
from cli.columns import Cell
from cli.connection import connected
from cli.delete import delete
from cli.output import AsJson, Document, emit, table
from cli.tasks_map import map_command

app = typer.Typer(help="List, show, carry and delete tasks.", no_args_is_help=True, rich_markup_mode=None)
app.command("map")(map_command)
app.command()(carry)
app.command()(delete)


@app.command("list")
def list_tasks(
    label: Annotated[str | None, typer.Option(help="Only tasks that have this label.")] = None,
    metric: Annotated[str | None, typer.Option(help="Only tasks whose latest version has this metric.")] = None,
    at_least: Annotated[
        float | None, typer.Option(help="Minimum value of --metric; for log_loss and mse, the maximum.")
    ] = None,
    shipped: Annotated[bool, typer.Option("--shipped", help="Include the tasks that ship with the base.")] = False,
    as_json: AsJson = False,
) -> None:
    """List tasks with their latest version. Shipped tasks are only counted, unless an option selects them."""
    with connected() as service:
        matching = service.tasks(label=label, metric=metric, at_least=at_least)
    tasks = [task.document for task in matching]
    everything = shipped or label is not None or metric is not None
    emit({"tasks": tasks}, as_json, lambda: _table(tasks, everything))


@app.command()
def show(task: Annotated[str, typer.Argument(help="Name of a task.")], as_json: AsJson = False) -> None:
    """Show a task: labels, words, aliases, latest version."""
    with connected() as service:
        document = service.task(task).document
    emit(document, as_json, lambda: _card(document))


def headline(version: Document) -> tuple[str, ...]:
    """The version's most important metric, and the rows that it was measured on."""
    for split in ("test", "validation"):
        metrics = version["metrics"].get(split) or {}
        for name in ("accuracy", "micro_f1", "spearman", "pearson"):
            if name in metrics:
                return f"{name} {metrics[name]['value']:.3f}", f"on {split}"
    return ()


def _table(tasks: Sequence[Document], everything: bool) -> Any:
    """Learned tasks, then those shipped with the base, or their number."""
    from rich.console import Group

    learned, shipped = ([task for task in tasks if task["source"] is source] for source in (False, True))
    shown = [*learned, *(shipped if everything else ())]
    heads = ("task", "texts", "labels", "latest", "result", "from")
    parts: list[Any] = [table(heads, map(_row, shown), folded=("labels",))] if shown else []
    if shipped and not everything:
        come = "1 task comes" if len(shipped) == 1 else f"{len(shipped)} tasks come"
        parts.append(f"{come} with the base: onboard tasks list --shipped")
    return Group(*parts)


def _row(task: Document) -> tuple[Cell, ...]:
    from onboard.domain.dataset import label_text
    from onboard.domain.task import marks

    labels = ", ".join(map(label_text, task["labels"])) or f"a number, {task['low']:g} to {task['high']:g}"
    texts = {True: "pair", False: "one", None: ""}[task.get("pairs")]
    latest = task["latest"]
    shown = f"v{latest['version']}{marks(latest)}" if latest else ""
    origin = "shipped" if task["source"] else (latest["parent"] if latest else "")
    return task["task"], texts, labels, shown, headline(latest) if latest else "", origin


def _card(document: Document) -> Any:
    from rich.markdown import Markdown

    from onboard.contract.card import render_card
    from onboard.domain.task import EmbeddingVersion

    if document["latest"] is None:
        return f"task {document['task']} has no latest version: onboard versions {document['task']}"
    return Markdown(render_card(EmbeddingVersion.from_json(document["latest"])))
