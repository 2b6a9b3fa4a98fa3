"""Use cases: a task with its latest version and its aliases, and a page of its versions."""

from __future__ import annotations

from typing import Any

from onboard.domain.wanted import task_document
from onboard.errors import NotFoundError
from onboard.registry.aliases import AliasRepository
from onboard.registry.database import Database
from onboard.registry.tasks import TaskRepository
from onboard.registry.versions import VersionRepository


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
    return {**task_document(task, latest), "aliases": aliases}


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
    return {"task": name, "aliases": aliases, "versions": [version.to_json() for version in versions], "next": older}
