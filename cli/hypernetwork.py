"""`onboard hypernetwork`: list the versions of a base's hypernetwork, show one, and revert to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from onboard.contract.guard import GuardVerdict
    from onboard.contract.hypernetworks import HypernetworkDetail, HypernetworkDocument, HypernetworkReverted

app = typer.Typer(help="Manage the versions of a base's hypernetwork.", no_args_is_help=True, rich_markup_mode=None)
OfBase = Annotated[str | None, typer.Option(help="Name or digest of a base. Defaults to ONBOARD_BASE.")]
Version = Annotated[int, typer.Argument(min=1, max=999_999_999, help="Number of a version.")]


@app.command("list")
def list_versions(base: OfBase = None, as_json: AsJson = False) -> None:
    """List the versions of a base's hypernetwork; new tasks are learned under the head."""
    from onboard.contract.hypernetworks import HypernetworkList

    with connected() as service:
        document = service.hypernetworks(base).parsed(HypernetworkList)
    heads = ("version", "", "parent", "job", "pinned", "guard", "digest", "created")
    emit(document, as_json, lambda: table(heads, map(_row, document.hypernetworks)))


@app.command()
def show(version: Version, base: OfBase = None, as_json: AsJson = False) -> None:
    """Show a version: its origin, the versions pinned to it, and the guard's verdict on every earlier task."""
    from onboard.contract.hypernetworks import HypernetworkDetail

    with connected() as service:
        document = service.hypernetwork_version(version, base).parsed(HypernetworkDetail)
    emit(document, as_json, lambda: _card(document))


@app.command()
def revert(version: Version, base: OfBase = None, as_json: AsJson = False) -> None:
    """Make a version the head again. New tasks are learned under it; published versions do not change."""
    from onboard.contract.hypernetworks import HypernetworkReverted

    with connected() as service:
        document = service.revert_hypernetwork(version, base).parsed(HypernetworkReverted)
    emit(document, as_json, lambda: _told(document))


def _row(version: HypernetworkDocument) -> tuple[str, ...]:
    parent = "" if version.parent is None else f"v{version.parent}"
    return (
        f"v{version.version}", _state(version), parent, version.job or "", str(version.pinned),
        version.metrics.get("guard", {}).get("verdict") or "", version.digest[:19], version.created_at or "",
    )  # fmt: skip


def _state(version: HypernetworkDocument) -> str:
    if version.head:
        return "head"
    return "collected" if version.collected_at else ""


def _card(document: HypernetworkDetail) -> RenderableType:
    from rich.console import Group

    return Group(*_facts(document), *_guard(document.guard))


def _facts(document: HypernetworkDetail) -> Iterator[str]:
    number, pinned, by = document.version, document.pinned, document.pinned_by
    yield f"hypernetwork v{number} of base {document.base}{', the head' if document.head else ''}"
    yield f"digest  {document.digest}"
    if document.parent is not None:
        moved_from = (document.metrics.get("tuning") or {}).get("moved_from")
        line = f"v{document.parent}" if moved_from is None else f"v{moved_from} and moved onto v{document.parent}"
        yield f"tuned from {line}{' by job ' + document.job if document.job else ''}"
    if document.collected_at:
        yield f"collected {document.collected_at}because nothing needed it any more; its weights are deleted"
    yield f"pinned to it: {pinned} version{'s' if pinned != 1 else ''} of {by.tasks} tasks"
    if by.in_use:
        yield f"in use: {' '.join(by.in_use)}"
    if by.learned:
        yield f"learned under it and carried to a later one: {by.learned}"


def _guard(verdict: GuardVerdict | None) -> Iterator[RenderableType]:
    from onboard.report.tuned import GUARD_HEAD, guard_notes, guard_rows

    if verdict is None:
        return
    yield f"guard: {verdict.verdict}. {verdict.reason}".rstrip()
    guard = verdict.to_json()
    rows = guard_rows(guard)
    if rows:
        yield table(GUARD_HEAD, rows)
        yield from guard_notes(guard)


def _told(document: HypernetworkReverted) -> str:
    version, previous, base = document.version, document.previous, document.base
    if version == previous:
        return f"hypernetwork v{version} is already the head of base {base}; nothing changed"
    return (
        f"hypernetwork v{version} is the head of base {base} now (was v{previous})\n"
        "New tasks are learned under it, and the next tuning starts from it.\n"
        f"Published versions do not change: those pinned to v{previous} stays so."
    )
