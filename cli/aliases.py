"""`onboard promote` and `onboard rollback`: move an alias such as `latest`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit

if TYPE_CHECKING:
    from onboard.contract.versions import AliasMoveDocument

Alias = Annotated[str, typer.Option(help="Alias to move, such as latest or production.")]


def promote(
    version: Annotated[str, typer.Argument(help="TASK@vN.")],
    alias: Alias,
    if_better: Annotated[
        bool,
        typer.Option(
            "--if-better",
            help="Promote only if it is significantly better than the alias's current version, else exit with 4. "
            "A new alias compares with latest, or with the most frequent answer.",
        ),
    ] = False,
    as_before: Annotated[
        bool,
        typer.Option(
            "--as-before",
            help="Answer under the alias with the previous label names if some were renamed.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move an alias to this version; its history is kept."""
    with connected() as service:
        moved = service.promote(version, alias, if_better=if_better, as_before=as_before)
    emit(moved, as_json, lambda: _sentence(moved))


def rollback(
    task: Annotated[str, typer.Argument(help="Name of a task.")], alias: Alias, as_json: AsJson = False
) -> None:
    """Move an alias back to its previous version."""
    with connected() as service:
        moved = service.rollback(task, alias)
    emit(moved, as_json, lambda: _sentence(moved))


def _sentence(move: AliasMoveDocument) -> str:
    before = f" (was v{move.previous})" if move.previous else ""
    names = "".join(f"\nanswers {name!r} for {label!r}" for label, name in move.names or ())
    return f"{move.task}@{move.alias} is v{move.version}{before}{names}"
