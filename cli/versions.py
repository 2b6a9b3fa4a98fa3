"""`onboard versions TASK`: everything that was published for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import AsJson, emit, say
from cli.services import opened

if TYPE_CHECKING:
    from rich.table import Table


def versions(
    task: Annotated[str, typer.Argument(help="Name of a task.")],
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 200,
    before: Annotated[int | None, typer.Option(metavar="N", help="Only versions before number N.")] = None,
    as_json: AsJson = False,
) -> None:
    """Versions of a task, with the aliases that name them."""
    from onboard.registry.aliases import AliasRepository
    from onboard.registry.tasks import TaskRepository
    from onboard.registry.versions import VersionRepository

    with opened() as services, services.database.read() as session:
        TaskRepository(session).get(task)
        found = VersionRepository(session).newest(task, limit, before)
        aliases = AliasRepository(session).list(task)
    named = {
        each.version: sorted(alias for alias, number in aliases.items() if number == each.version) for each in found
    }
    older = found[0].version if len(found) == limit and found[0].version > 1 else None
    document = {"task": task, "aliases": aliases, "versions": [each.to_json() for each in found], "next_before": older}
    if older is not None:
        say(f"There are older ones: onboard versions {task} --before {older}")
    emit(document, as_json, lambda: _table(found, named))


def _table(found: Any, named: dict[int, list[str]]) -> Table:
    from rich.table import Table

    from cli.tasks import headline
    from onboard.domain.moment import to_iso

    table = Table("version", "aliases", "result", "init", "hypernetwork", "embedding", "published")
    for each in found:
        weak = " weak" if each.weak else ""
        table.add_row(
            f"v{each.version}{weak}", " ".join(named[each.version]), headline(each), each.parent,
            f"v{each.hypernetwork_version}", each.embedding_digest[:19], to_iso(each.created_at),
        )  # fmt: skip
    return table
