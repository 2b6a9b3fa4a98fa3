"""Use cases: tasks that fit a search, one with its latest version and aliases, a page of its versions, a version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from onboard.contract.versions import TaskDetail, TaskDocument, VersionDocument
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
    """The tasks that fit (or the first `limit`), by name and after `after`, each with its latest version."""
    with database.read() as session:
        tasks = SearchRepository(session).tasks(search, limit, after)
    return [TaskDocument.with_latest(task, latest).to_json() for task, latest in tasks]


def resolve(database: Database, *references: str | Reference) -> list[EmbeddingVersion]:
    """The versions that references mean just now, all of one moment. Raises InputError, NotFoundError."""
    with database.read() as session:
        versions = VersionRepository(session)
        return [versions.resolve(reference) for reference in references]


def resolve_known(database: Database, references: Iterable[Reference]) -> dict[str, EmbeddingVersion | NotFoundError]:
    """What each reference means just now, all of one moment, by its text: the version, or why there is none."""
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
    """The versions of these tasks and numbers; see `VersionRepository.published`."""
    with database.read() as session:
        return VersionRepository(session).published(numbers)


def current(database: Database, reference: Reference) -> Current:
    """What a reference means just now, without its document: one query. Raises NotFoundError."""
    with database.glance() as session:
        present = SearchRepository(session).current(reference)
    if present is None:
        raise NotFoundError("unknown-version-reference", task=reference.task, named=reference)  # fmt: skip
    return present


def named(database: Database, alias: str, *, every: bool = False) -> Sequence[Current]:
    """The embedding that an alias means in every task, by task; versions without one only if `every` is asked."""
    with database.glance() as session:
        return SearchRepository(session).named(alias, every=every)


def alias_names(database: Database, reference: str) -> AliasNames:
    """What the alias of a reference calls labels of its version; empty where it calls them as the version does."""
    named = Reference.parse(reference)
    if named.alias is None:
        return ()
    with database.read() as session:
        return AliasRepository(session).names(named.task, named.alias) or ()


def describe_task(database: Database, name: str) -> dict[str, Any]:
    """The task as a document; without a latest version where nothing was published, or it was withdrawn.

    Raises:
        NotFoundError: there is no such task.
    """
    with database.read() as session:
        task = TaskRepository(session).get(name)
        aliases = AliasRepository(session).list(name)
        try:
            latest = VersionRepository(session).resolve(name)
        except NotFoundError:
            latest = None
    return TaskDetail.with_latest(task, latest, aliases=aliases).to_json()


def versions_page(database: Database, name: str, limit: int, before: int | None = None) -> dict[str, Any]:
    """The newest versions of a task, by number, as a JSON-compatible document.

    Args:
        limit: at most so many.
        before: only those with lower numbers.

    Returns:
        `task`, `aliases`, `versions`, and `next`: the number to go on before, as text; None without older ones.

    Raises:
        NotFoundError: there is no such task.
    """
    with database.read() as session:
        TaskRepository(session).get(name)
        versions = VersionRepository(session).newest(name, limit, before)
        aliases = AliasRepository(session).list(name)
    older = str(versions[0].version) if len(versions) == limit and versions[0].version > 1 else None
    shown = [VersionDocument.of(version).to_json() for version in versions]
    return {"task": name, "aliases": aliases, "versions": shown, "next": older}
