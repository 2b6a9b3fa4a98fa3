"""Use cases: search tasks, describe a task or a version, list versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onboard.contract.versions import CanaryDocument, TaskDetail, TaskDocument, VersionDocument
from onboard.domain.canary import Canary
from onboard.domain.names import Reference
from onboard.domain.task import AliasNames, EmbeddingVersion
from onboard.domain.task_search import TaskSearch
from onboard.errors import NotFoundError
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.registry.search import Current, SearchRepository
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository


def list_tasks(
    database: Database, search: TaskSearch, limit: int | None = None, after: str | None = None
) -> list[dict[str, Any]]:
    """Return matching tasks after the name `after`, by name, with their latest version, at most `limit`."""
    with database.read() as session:
        tasks = SearchRepository(session).tasks(search, limit, after)
    return [TaskDocument.with_latest(task, latest).to_json() for task, latest in tasks]


def resolve(database: Database, *references: str | Reference) -> list[EmbeddingVersion]:
    """Resolve references in one transaction. Raises InputError, NotFoundError."""
    with database.read() as session:
        versions = VersionRepository(session)
        return [versions.resolve(reference) for reference in references]


def resolve_known(database: Database, references: Iterable[Reference]) -> dict[str, EmbeddingVersion | NotFoundError]:
    """Resolve references in one transaction. Returns, by its text, the version or the error of each."""
    resolved: dict[str, EmbeddingVersion | NotFoundError] = {}
    with database.read() as session:
        versions = VersionRepository(session)
        for reference in references:
            try:
                resolved[str(reference)] = versions.resolve(reference)
            except NotFoundError as error:
                resolved[str(reference)] = error
    return resolved


def published(database: Database, numbers: Iterable[tuple[str, int]]) -> Sequence[EmbeddingVersion]:
    """Return the versions with these tasks and numbers; see `VersionRepository.published`."""
    with database.read() as session:
        return VersionRepository(session).published(numbers)


def current(database: Database, reference: Reference) -> Current:
    """Resolve a reference without its document, in one query. Raises NotFoundError."""
    with database.glance() as session:
        target = SearchRepository(session).current(reference)
    if target is None:
        raise NotFoundError("unknown-version-reference", task=reference.task, named=reference)  # fmt: skip
    return target


def named(database: Database, alias: str, *, every: bool = False) -> Sequence[Current]:
    """Return the target of an alias in every task, by task; without an embedding only if `every` is set."""
    with database.glance() as session:
        return SearchRepository(session).named(alias, every=every)


def alias_names(database: Database, reference: str) -> AliasNames:
    """Return the label names of a reference's alias; empty if it renames no labels."""
    named = Reference.parse(reference)
    if named.alias is None:
        return ()
    with database.read() as session:
        return AliasRepository(session).names(named.task, named.alias) or ()


def describe_task(database: Database, name: str) -> dict[str, Any]:
    """Return the task as a document, without a latest version if none is published or it was withdrawn.

    Raises:
        NotFoundError: the task does not exist.
    """
    with database.read() as session:
        task = TaskRepository(session).get(name)
        aliases, canaries = AliasRepository(session).list(name), AliasRepository(session).canaries(name)
        try:
            latest = VersionRepository(session).resolve(name)
        except NotFoundError:
            latest = None
    return TaskDetail.with_latest(task, latest, aliases=aliases, canaries=_documents(canaries)).to_json()


def versions_page(database: Database, name: str, limit: int, before: int | None = None) -> dict[str, Any]:
    """Return the newest versions of a task, by number, as a JSON-compatible document.

    Returns:
        `task`, `aliases`, `canaries`, `versions`, and `next`: the value of `before` for the next page, as text; None
            on the last page.

    Raises:
        NotFoundError: the task does not exist.
    """
    with database.read() as session:
        TaskRepository(session).get(name)
        versions = VersionRepository(session).newest(name, limit, before)
        aliases, canaries = AliasRepository(session).list(name), AliasRepository(session).canaries(name)
    older = str(versions[0].version) if len(versions) == limit and versions[0].version > 1 else None
    shown = [VersionDocument.of(version).to_json() for version in versions]
    shared = {alias: canary.to_json() for alias, canary in _documents(canaries).items()}
    return {"task": name, "aliases": aliases, "canaries": shared, "versions": shown, "next": older}


def _documents(canaries: Mapping[str, Canary]) -> dict[str, CanaryDocument]:
    return {alias: CanaryDocument.of(canary) for alias, canary in canaries.items()}
