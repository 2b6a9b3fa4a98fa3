"""`onboard promote` and `onboard rollback`: which version a name such as `latest` means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.output import AsJson, emit
from cli.services import opened

if TYPE_CHECKING:
    from onboard.domain.task import AliasMove

Alias = Annotated[str, typer.Option(help="The name to move, for example latest or production.")]


def promote(version: Annotated[str, typer.Argument(help="TASK@vN.")], alias: Alias, as_json: AsJson = False) -> None:
    """Let an alias mean this version; its history is kept."""
    from onboard.registry.aliases import AliasRepository
    from onboard.registry.versions import VersionRepository

    with opened() as services, services.database.write() as session:
        found = VersionRepository(session).resolve(version)
        move = AliasRepository(session).move(found.task, alias, found.version, reason="promoted")
    emit(_document(move), as_json, lambda: _sentence(move))


def rollback(
    task: Annotated[str, typer.Argument(help="Name of a task.")], alias: Alias, as_json: AsJson = False
) -> None:
    """Let an alias mean the version that it meant before."""
    from onboard.registry.aliases import AliasRepository

    with opened() as services, services.database.write() as session:
        move = AliasRepository(session).rollback(task, alias)
    emit(_document(move), as_json, lambda: _sentence(move))


def _document(move: AliasMove) -> dict[str, Any]:
    return {"task": move.task, "alias": move.alias, "version": move.version, "previous": move.previous}


def _sentence(move: AliasMove) -> str:
    before = f" (was v{move.previous})" if move.previous else ""
    return f"{move.task}@{move.alias} is v{move.version}{before}"
