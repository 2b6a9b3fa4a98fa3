"""`onboard versions TASK`: everything that was published for a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, Document, emit, say, table
from onboard.domain.counting import size_text
from onboard.domain.methods import OWN_START

if TYPE_CHECKING:
    from cli.columns import Columns


_DIGEST_CHARACTERS = 12


def versions(
    task: Annotated[str, typer.Argument(help="Name of a task.")],
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries; the newest are shown.")] = 200,
    before: Annotated[int | None, typer.Option(metavar="N", help="Only versions before number N.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the versions of a task with their aliases."""
    with connected() as service:
        document = service.versions_page(task, limit, before)
    if document["next"] is not None:
        say(f"There are older ones: onboard versions {task} --before {document['next']}")
    emit(document, as_json, lambda: _table(document))


def _table(document: Document) -> Columns:
    from cli.tasks import headline
    from onboard.domain.canary import share_text
    from onboard.domain.task import marks

    rows = []
    for version in document["versions"]:
        named = sorted(alias for alias, number in document["aliases"].items() if number == version["version"])
        named += sorted(
            f"{alias} ({share_text(canary['share'])})"
            for alias, canary in (document.get("canaries") or {}).items() if canary["version"] == version["version"]
        )  # fmt: skip
        digest = version["embedding_digest"].removeprefix("sha256:")
        rows.append((
            (f"v{version['version']}{marks(version)}", " ".join(named)), headline(version),
            _origin(version), (digest[:_DIGEST_CHARACTERS], _size(version)),
            (version["created_at"] or "")[:16].replace("T", " "),
        ))  # fmt: skip
    heads = ("version", "result", "init", "digest", "published (UTC)")
    return table(heads, rows, folded=("version", "init"))


def _origin(version: Document) -> tuple[str, ...]:
    """Its start and its hypernetwork; its method if it has neither."""
    if version["parent"] == OWN_START:
        return ("–", version["method"])
    return version["parent"], f"hypernetwork v{version['hypernetwork_version']}"


def _size(version: Document) -> str:
    """Of its files; a service of an earlier release does not say it."""
    size = version.get("stored_bytes")
    return "" if size is None else size_text(size)
