"""`onboard tasks delete`: delete a task permanently, and list its descendants, or rebuild them without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, Document, emit
from onboard.domain.counting import counted, size_text


def delete(
    task: Annotated[str, typer.Argument(help="Name of a task.")],
    unlearn: Annotated[
        bool,
        typer.Option(
            "--unlearn", help="Rebuild descendants from their own rows, and revert heads that were tuned on the task."
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be deleted and its descendants, without deleting.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a task permanently: rows, versions, requests and results. Its version numbers are never reused."""
    with connected() as service:
        document = service.delete_task(task, unlearn=unlearn, dry_run=dry_run)
    emit(document, as_json, lambda: "\n".join(_told(document)))


def _told(document: Document) -> Iterator[str]:

    removed, descendants, unlearning = document["removed"], document["descendants"], document["unlearning"]
    gone = ", ".join(counted(removed[f"{what}s"], what) for what in ("version", "job", "dataset"))
    yield f"task {document['task']} {'would be deleted' if document['dry_run'] else 'is deleted'}"
    yield f"  deleted: {gone}, {counted(removed['artifacts'], 'file')} ({size_text(removed['bytes'])})"
    if document["shared_with"]:
        yield f"  a dataset stays, because other tasks use it: {', '.join(document['shared_with'])}"
    if descendants["versions"] or descendants["hypernetworks"]:
        yield "descendants:"
    for version in descendants["versions"]:
        names = f" ({', '.join(version['aliases'])})" if version["aliases"] else ""
        yield f"  {version['version']}{names}: {version['why']}"
    for version in descendants["hypernetworks"]:
        yield f"  hypernetwork version {version['version']}: {version['why']}"
    if unlearning is not None:
        yield from _unlearned(unlearning)
    elif descendants["versions"] or descendants["hypernetworks"]:
        yield f"They stay unchanged. {_how_to_rebuild(document)}"


def _how_to_rebuild(document: Document) -> str:
    if document.get("shipped"):
        return f"They cannot be rebuilt without {document['task']}, because a base was trained on it."
    return f"To rebuild them: onboard tasks delete {document['task']} --unlearn"


def _unlearned(unlearning: Document) -> Iterator[str]:
    yield "results:"
    for reverted in unlearning["reverted"]:
        yield f"  head: back to hypernetwork version {reverted['to']}, from {reverted['from']}"
    for rebuilt in unlearning["rebuilding"]:
        job = f"job {rebuilt['job']}" if rebuilt["job"] else "a job"
        yield f"  {', '.join(rebuilt['versions'])}: rebuilt by {job}"
    for restored in unlearning["restored"]:
        yield f"  {restored['version']}: its aliases name {restored['to']}"
    for version in unlearning["removed"]:
        yield f"  {version}: removed, no alias names it"
    for staying in unlearning["cannot"]:
        yield f"  {staying['version']}: cannot be rebuilt and stays, {staying['why']}"
