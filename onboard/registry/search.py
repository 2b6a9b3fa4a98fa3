"""What the door asks most: which artifact a name means just now, and which tasks fit; few columns, no whole tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Select, and_, bindparam, select

from onboard.domain.names import LATEST, Reference
from onboard.domain.task import EmbeddingVersion, Task
from onboard.domain.task_search import TaskSearch
from onboard.registry.aliases import names_version
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import AliasRow, EmbeddingVersionRow, TaskRow
from onboard.registry.versions import HAS_EMBEDDING, version_of

_CHUNK: Final = 500  # rows that a search looks at in one query


@dataclass(frozen=True, slots=True)
class Current:
    """What a reference names just now: enough to tell whether somebody has it already.

    Args:
        has_embedding: whether it is an embedding; known only where an alias is asked for in all tasks.
    """

    task: str
    version: int
    artifact: str
    has_embedding: bool = True


class SearchRepository(Repository):
    """Look-ups over tasks, aliases and versions together."""

    def current(self, reference: Reference) -> Current | None:
        """What the reference names: one query over primary keys. None where there is none (any more)."""
        statement = _BY_ALIAS if reference.version is None else _BY_NUMBER
        asked = {"task": reference.task, "number": reference.version, "alias": reference.alias}
        row = self._session.execute(statement, asked).one_or_none()
        return None if row is None else Current(reference.task, row.version, row.artifact)

    def named(self, alias: str) -> Sequence[Current]:
        """What the alias names in every task that has it, by task."""
        statement = (
            select(EmbeddingVersionRow.task, EmbeddingVersionRow.version, EmbeddingVersionRow.artifact, HAS_EMBEDDING)
            .join(AliasRow, and_(names_version(), AliasRow.alias == alias))
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(TaskRow.deleted_at.is_(None))
            .order_by(EmbeddingVersionRow.task)
        )
        return [Current(*row) for row in self._session.execute(statement)]

    def tasks(
        self, search: TaskSearch, limit: int | None = None, after: str | None = None
    ) -> Sequence[tuple[Task, EmbeddingVersion | None]]:
        """The tasks that fit (or the first `limit`), by name and after `after`, each with its latest version."""
        tasks: list[tuple[Task, EmbeddingVersion | None]] = []
        for task, latest in self._all(after, min(limit or _CHUNK, _CHUNK) if search.everything else _CHUNK):
            if search.fits(task, latest):
                tasks.append((task, latest))
            if len(tasks) == limit:
                break
        return tasks

    def _all(self, after: str | None, chunk: int) -> Iterator[tuple[Task, EmbeddingVersion | None]]:
        """Every task after a name with its latest version, read a chunk at a time."""
        last = after or ""
        while True:
            statement = (
                select(TaskRow, EmbeddingVersionRow)
                .outerjoin(AliasRow, and_(AliasRow.task == TaskRow.name, AliasRow.alias == LATEST))
                .outerjoin(EmbeddingVersionRow, names_version())
                .where(TaskRow.name > last, TaskRow.deleted_at.is_(None))
                .order_by(TaskRow.name)
                .limit(chunk)
            )
            rows = self._session.execute(statement).all()
            for task, version in rows:
                yield record_of(Task, task), version_of(version) if version is not None else None
            if len(rows) < chunk:
                return
            last = rows[-1][0].name


def _artifact_where(condition: ColumnElement[bool]) -> Select[int, str]:
    return (
        select(EmbeddingVersionRow.version, EmbeddingVersionRow.artifact)
        .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
        .where(EmbeddingVersionRow.task == bindparam("task"), condition, TaskRow.deleted_at.is_(None))
    )


# Built once: building a statement takes as long as running it, and these are asked for by every reader all day.
_BY_NUMBER: Final = _artifact_where(EmbeddingVersionRow.version == bindparam("number"))
_BY_ALIAS: Final = _artifact_where(
    EmbeddingVersionRow.version.in_(
        select(AliasRow.version).where(AliasRow.task == bindparam("task"), AliasRow.alias == bindparam("alias"))
    )
)
