"""`onboard promote` and `onboard rollback`: move an alias such as `latest`, or share its texts with a canary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit
from onboard.domain.canary import CANARY_ENDED, parse_share, share_text

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
    share: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Let this version answer a share of the alias's texts, such as 10%, as its canary; 0% ends it. "
            "The alias does not move.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Move an alias to this version; its history is kept. A move ends the alias's canary."""
    fraction = None if share is None else parse_share(share)
    with connected() as service:
        moved = service.promote(version, alias, if_better=if_better, as_before=as_before, share=fraction)
    emit(moved, as_json, lambda: _sentence(moved))


def rollback(
    task: Annotated[str, typer.Argument(help="Name of a task.")], alias: Alias, as_json: AsJson = False
) -> None:
    """Move an alias back to its previous version, or end its canary if it has one."""
    with connected() as service:
        moved = service.rollback(task, alias)
    emit(moved, as_json, lambda: _sentence(moved))


def _sentence(move: AliasMoveDocument) -> str:
    named = f"{move.task}@{move.alias} is v{move.version}"
    if move.canary is not None and move.share is not None:
        compare = f"onboard compare {move.task}@v{move.version} {move.task}@v{move.canary}"
        return f"{named}; v{move.canary} answers {share_text(move.share)} of its texts\ncompare them: {compare}"
    if move.reason.partition(":")[0] == CANARY_ENDED:
        return f"{named}; its canary has ended"
    before = f" (was v{move.previous})" if move.previous else ""
    names = "".join(f"\nanswers {name!r} for {label!r}" for label, name in move.names or ())
    return f"{named}{before}{names}"
