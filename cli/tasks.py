"""`onboard tasks`: what has been learned, the shipped source tasks included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import AsJson, emit
from cli.services import opened

if TYPE_CHECKING:
    from rich.table import Table

    from onboard.domain.task import EmbeddingVersion, Task

app = typer.Typer(help="What has been learned.", no_args_is_help=True, rich_markup_mode=None)


@app.command("list")
def list_tasks(as_json: AsJson = False) -> None:
    """Every task with its latest version; the base's source tasks are tasks like any other."""
    from onboard.registry.tasks import TaskRepository
    from onboard.registry.versions import VersionRepository

    with opened() as services, services.database.read() as session:
        tasks = TaskRepository(session).list()
        latest = {version.task: version for version in VersionRepository(session).list(latest_only=True)}
    emit({"tasks": [_document(task, latest.get(task.name)) for task in tasks]}, as_json, lambda: _table(tasks, latest))


@app.command()
def show(task: Annotated[str, typer.Argument(help="Name of a task.")], as_json: AsJson = False) -> None:
    """A task: labels, words, aliases, latest version."""
    from onboard.registry.aliases import AliasRepository
    from onboard.registry.tasks import TaskRepository
    from onboard.registry.versions import VersionRepository

    with opened() as services, services.database.read() as session:
        found = TaskRepository(session).get(task)
        version = VersionRepository(session).resolve(task)
        aliases = AliasRepository(session).list(task)
    document = {**_document(found, version), "aliases": aliases}
    emit(document, as_json, lambda: _card(version))


def _document(task: Task, version: EmbeddingVersion | None) -> dict[str, Any]:
    latest = version.to_json() if version else None
    return {
        **task.to_json(),
        "version": version.version if version else None,
        "weak": bool(version and version.weak),
        "latest": latest,
    }


def headline(version: EmbeddingVersion) -> str:
    """The version's headline metric in a few words."""
    for split in ("test", "validation"):
        metrics = version.metrics.get(split) or {}
        for name in ("accuracy", "spearman", "pearson"):
            if name in metrics:
                return f"{name} {metrics[name]['value']:.3f} ({split})"
    return ""


def _table(tasks: Any, latest: dict[str, EmbeddingVersion]) -> Table:
    from rich.table import Table

    from onboard.domain.dataset import label_text

    table = Table("task", "kind", "labels", "latest", "result", "from")
    for task in tasks:
        version = latest.get(task.name)
        labels = ", ".join(label_text(label) for label in task.labels) or f"{task.low:g} to {task.high:g}"
        shown = f"v{version.version}{' weak' if version.weak else ''}" if version else ""
        origin = "shipped" if task.source else (version.parent if version else "")
        table.add_row(task.name, task.kind, labels, shown, headline(version) if version else "", origin)
    return table


def _card(version: EmbeddingVersion) -> Any:
    from rich.markdown import Markdown

    from onboard.card import render_card

    return Markdown(render_card(version))
