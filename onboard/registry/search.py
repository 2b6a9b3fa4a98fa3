"""Frequent look-ups: resolve references, search tasks. They read few columns"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, and_, bindparam, select

from onboard.domain.canary import Canary
from onboard.domain.names import LATEST, Reference
from onboard.domain.task import AliasNames, EmbeddingVersion, Task
from onboard.domain.task_search import TaskSearch
from onboard.registry.aliases import names_version
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import AliasRow, EmbeddingVersionRow, TaskRow
from onboard.registry.versions import HAS_EMBEDDING, rows_of_pairs, version_of

_CHUNK: Final = 500  # rows per query of a search


@dataclass(frozen=True, slots=True)
class Current:
    """The current target of a reference, enough to tell whether a client has it already."""

    task: str
    version: int
    artifact: str
    provisional: bool = False
    names: AliasNames | None = None  # the alias's names for labels of the version
    canary: Canary | None = None  # of the alias; only `currents` reads it

    @property
    def tag(self) -> str:
        """A value that changes with the version's document, including its provisional mark."""
        return f"{self.artifact}-provisional" if self.provisional else self.artifact


class SearchRepository(Repository):
    """Look-ups across tasks, aliases and versions."""

    def current(self, reference: Reference) -> Current | None:
        """Resolve a reference in one query by primary keys. None if it does not exist (any more)."""
        statement = _BY_ALIAS if reference.version is None else _BY_NUMBER
        parameters = {"task": reference.task, "number": reference.version, "alias": reference.alias}
        row = self._session.execute(statement, parameters).one_or_none()
        return None if row is None else Current(reference.task, row.version, row.artifact, row.provisional)

    def currents(self, references: Collection[Reference]) -> dict[Reference, Current]:
        """Resolve many references in few queries. Those that do not exist (any more) are left out."""
        numbered = {
            (reference.task, reference.version): reference for reference in references if reference.version is not None
        }
        aliased = {
            (reference.task, reference.alias): reference for reference in references if reference.version is None
        }
        number = EmbeddingVersionRow.task, EmbeddingVersionRow.version
        alias = AliasRow.task, AliasRow.alias
        facts = *number, EmbeddingVersionRow.artifact, EmbeddingVersionRow.provisional
        of_living = TaskRow, and_(TaskRow.name == EmbeddingVersionRow.task, TaskRow.deleted_at.is_(None))
        by_number = select(*number, *facts).join(*of_living).order_by(*number)  # this order lets SQLite use the index
        by_alias = select(*alias, *facts, AliasRow.names, AliasRow.canary, AliasRow.share)
        by_alias = by_alias.join(AliasRow, names_version()).join(*of_living)
        lookups: list[tuple[Mapping[Any, Reference], Iterator[Any]]] = [
            (numbered, rows_of_pairs(self._session, by_number, number, sorted(numbered))),
            (aliased, rows_of_pairs(self._session, by_alias, alias, sorted(aliased))),
        ]
        return {
            references_by_key[task, target]: _current(*row)
            for references_by_key, rows in lookups
            for task, target, *row in rows
        }

    def named(self, alias: str, *, every: bool = False) -> Sequence[Current]:
        """Return the target of an alias in every task, by task; without an embedding only if `every` is set."""
        statement = (
            select(
                EmbeddingVersionRow.task,
                EmbeddingVersionRow.version,
                EmbeddingVersionRow.artifact,
                EmbeddingVersionRow.provisional,
            )
            .join(AliasRow, and_(names_version(), AliasRow.alias == alias))
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(TaskRow.deleted_at.is_(None), *(() if every else (HAS_EMBEDDING,)))
            .order_by(EmbeddingVersionRow.task)
        )
        return [Current(*row) for row in self._session.execute(statement)]

    def tasks(
        self, search: TaskSearch, limit: int | None = None, after: str | None = None
    ) -> Sequence[tuple[Task, EmbeddingVersion | None]]:
        """Return matching tasks after the name `after`, by name, with their latest version, at most `limit`."""
        tasks: list[tuple[Task, EmbeddingVersion | None]] = []
        chunk = min(limit or _CHUNK, _CHUNK) if search.by_row else _CHUNK
        for task, latest in self._all(search, after, chunk):
            if search.fits(task, latest):
                tasks.append((task, latest))
            if len(tasks) == limit:
                break
        return tasks

    def _all(self, search: TaskSearch, after: str | None, chunk: int) -> Iterator[tuple[Task, EmbeddingVersion | None]]:
        """Yield tasks after a name with their latest version, filtered by their row and read in chunks."""
        last = after or ""
        fitting: list[ColumnElement[bool]] = [] if search.shipped is None else [TaskRow.source.is_(search.shipped)]
        if search.name:
            fitting.append(TaskRow.name.contains(search.name, autoescape=True))
        while True:
            statement = (
                select(TaskRow, EmbeddingVersionRow)
                .outerjoin(AliasRow, and_(AliasRow.task == TaskRow.name, AliasRow.alias == LATEST))
                .outerjoin(EmbeddingVersionRow, names_version())
                .where(TaskRow.name > last, TaskRow.deleted_at.is_(None), *fitting)
                .order_by(TaskRow.name)
                .limit(chunk)
            )
            rows = self._session.execute(statement).all()
            for task, version in rows:
                yield record_of(Task, task), version_of(version) if version is not None else None
            if len(rows) < chunk:
                return
            last = rows[-1][0].name


def _current(
    task: str,
    version: int,
    artifact: str,
    provisional: bool,
    names: AliasNames | None = None,
    canary: int | None = None,
    share: float | None = None,
) -> Current:
    shared = None if canary is None or share is None else Canary(canary, share)
    return Current(task, version, artifact, provisional, names, shared)


def _artifact_where(condition: ColumnElement[bool]) -> Select[int, str, bool]:
    return (
        select(EmbeddingVersionRow.version, EmbeddingVersionRow.artifact, EmbeddingVersionRow.provisional)
        .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
        .where(EmbeddingVersionRow.task == bindparam("task"), condition, TaskRow.deleted_at.is_(None))
    )


# Built once, because building a statement takes as long as running it, and these run constantly.
_BY_NUMBER: Final = _artifact_where(EmbeddingVersionRow.version == bindparam("number"))
_BY_ALIAS: Final = _artifact_where(
    EmbeddingVersionRow.version.in_(
        select(AliasRow.version).where(AliasRow.task == bindparam("task"), AliasRow.alias == bindparam("alias"))
    )
)
