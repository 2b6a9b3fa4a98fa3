"""Aliases: movable names of versions, with their history. `latest` is one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import groupby
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, insert, select, tuple_

from onboard.domain.documents import document_of
from onboard.domain.names import Reference, require_alias
from onboard.domain.task import AliasMove, AliasNames, label_keys
from onboard.domain.webhook import MOVED
from onboard.errors import ConflictError, NotFoundError, PreconditionFailedError
from onboard.registry.clock import database_now
from onboard.registry.outbox import OutboxRepository
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import AliasMoveRow, AliasRow, EmbeddingVersionRow, TaskRow
from onboard.registry.upsert import put_row

_ROLLBACK = "rollback"


class Kept(Enum):
    """Keep the alias's current label names."""

    KEPT = "kept"


KEPT: Final = Kept.KEPT


def names_version() -> ColumnElement[bool]:
    """Condition: an alias's row points to the embedding version of an outer query."""
    return and_(AliasRow.task == EmbeddingVersionRow.task, AliasRow.version == EmbeddingVersionRow.version)


class AliasRepository(Repository):
    """The aliases of every task."""

    def find(self, task: str, alias: str) -> int | None:
        """Return the version that the alias points to, or None."""
        return self._session.scalars(
            select(AliasRow.version).where(AliasRow.task == task, AliasRow.alias == alias)
        ).one_or_none()

    def list(self, task: str) -> dict[str, int]:
        """Return every alias of the task with its version."""
        rows = self._session.execute(
            select(AliasRow.alias, AliasRow.version).where(AliasRow.task == task).order_by(AliasRow.alias)
        )
        return dict(rows.all())

    def move(
        self,
        task: str,
        alias: str,
        version: int,
        *,
        expected: int | None = None,
        actor: str | None = None,
        reason: str = "",
        announce: bool = True,
        names: AliasNames | Kept | None = KEPT,
    ) -> AliasMove:
        """Point the alias at a version. If nothing changes, no move is recorded and `previous` is that version.

        Args:
            expected: the version that the alias must currently point to (compare and swap); 0 means none.
            announce: whether to send webhooks.
            names: names for labels of the version; None uses those of the version. KEPT keeps the current names if the
                version has all of their labels.

        Raises:
            InputError: `alias` is not a name, or looks like a version number.
            NotFoundError: the version does not exist.
            PreconditionFailedError: the alias does not point to `expected`.
        """
        require_alias(alias)
        self._lock(task)
        self._require_version(task, version)
        previous = self.find(task, alias)
        require_unmoved(task, alias, previous, expected)
        present_names = self.names(task, alias)
        if isinstance(names, Kept):
            names = self._fitting(task, version, present_names)
        names = [list(pair) for pair in names] if names else None
        if previous == version and names == present_names:  # a second entry would break rollback
            return replace(self.history(task, alias, 1)[0], previous=version, actor=actor, reason=reason)
        put_row(
            self._session, AliasRow, {"task": task, "alias": alias},
            {"version": version, "names": names, "updated_at": database_now()},
        )  # fmt: skip
        facts = {"version": version, "previous": previous, "actor": actor, "reason": reason, "names": names}
        statement = insert(AliasMoveRow).values(task=task, alias=alias, at=database_now(), **facts)
        move = record_of(AliasMove, self._session.scalars(statement.returning(AliasMoveRow)).one())
        if announce:
            document = document_of(move, "at")  # an event has a separate time
            OutboxRepository(self._session).add(MOVED, document)
        return move

    def rollback(
        self, task: str, alias: str, *, expected: int | None = None, actor: str | None = None, because: str = ""
    ) -> AliasMove:
        """Point the alias at the version that preceded the current one. Repeated rollbacks go further back.

        Args:
            expected: the version that the alias must currently point to (compare and swap).
            because: the reason, for the history.

        Raises:
            NotFoundError: the alias does not exist.
            PreconditionFailedError: the alias does not point to `expected`.
            ConflictError: no earlier version exists any more.
        """
        self._lock(task)
        current = self.find(task, alias)
        if current is None:
            raise NotFoundError("unknown-alias", task=task, alias=alias)
        require_unmoved(task, alias, current, expected)
        before = self._line(task, alias)[:-1]
        if not before:
            raise ConflictError("alias-without-past", task=task, alias=alias, present=current)
        reason = f"{_ROLLBACK}: {because}" if because else _ROLLBACK
        names = next((move.names for move in self.history(task, alias) if move.version == before[-1]), None)
        return self.move(task, alias, before[-1], actor=actor, reason=reason, names=names)

    def names(self, task: str, alias: str) -> AliasNames | None:
        """Return the alias's names for labels of its version; None if it renames no labels."""
        statement = select(AliasRow.names).where(AliasRow.task == task, AliasRow.alias == alias)
        return self._session.scalars(statement).one_or_none()

    def names_of(self, references: Iterable[Reference]) -> dict[str, AliasNames]:
        """Return the label names of all references with renamed labels, by their text, in one query."""
        texts = {(reference.task, reference.alias): str(reference) for reference in references if reference.alias}
        statement = select(AliasRow.task, AliasRow.alias, AliasRow.names).where(
            tuple_(AliasRow.task, AliasRow.alias).in_(list(texts))
        )
        return {texts[task, alias]: names for task, alias, names in self._session.execute(statement) if names}

    def _fitting(self, task: str, version: int, names: AliasNames | None) -> AliasNames | None:
        """Return the names if the version has all of their labels; otherwise None."""
        if not names:
            return None
        statement = select(EmbeddingVersionRow.labels).where(
            EmbeddingVersionRow.task == task, EmbeddingVersionRow.version == version
        )
        labels = label_keys(self._session.scalars(statement).one())
        return names if label_keys([label for label, _ in names]) <= labels else None

    def history(self, task: str, alias: str, limit: int | None = None) -> Sequence[AliasMove]:
        """Return the moves of the alias, or the last `limit`, newest first."""
        rows = self._session.scalars(
            select(AliasMoveRow)
            .where(AliasMoveRow.task == task, AliasMoveRow.alias == alias)
            .order_by(AliasMoveRow.id.desc())
            .limit(limit)
        )
        return [record_of(AliasMove, row) for row in rows]

    def _line(self, task: str, alias: str) -> Sequence[int]:
        """Return the versions that rollbacks go through, current one last, without deleted ones."""
        existing = set(
            self._session.scalars(select(EmbeddingVersionRow.version).where(EmbeddingVersionRow.task == task))
        )
        moves = self._session.execute(
            select(AliasMoveRow.version, AliasMoveRow.reason)
            .where(AliasMoveRow.task == task, AliasMoveRow.alias == alias)
            .order_by(AliasMoveRow.id)
        )
        line: list[int] = []
        for version, reason in moves:
            if reason.partition(":")[0] == _ROLLBACK:
                del line[-1:]
            if line[-1:] != [version]:  # in histories of earlier releases a rollback could lead anywhere
                line.append(version)
        return [version for version, _ in groupby(version for version in line if version in existing)]

    def _lock(self, task: str) -> None:
        self._session.execute(select(TaskRow.name).where(TaskRow.name == task).with_for_update())

    def _require_version(self, task: str, version: int) -> None:
        moves = self._session.scalars(
            select(EmbeddingVersionRow.version)
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(
                EmbeddingVersionRow.task == task,
                EmbeddingVersionRow.version == version,
                TaskRow.deleted_at.is_(None),
            )
        ).one_or_none()
        if moves is None:
            raise NotFoundError("unknown-version", task=task, version=version)


def require_unmoved(task: str, alias: str, present: int | None, expected: int | None) -> None:
    """Raise PreconditionFailedError if `expected` is given and differs from the current version; 0 means none."""
    if expected is None or expected == (present or 0):
        return
    facts: dict[str, Any] = {"task": task, "alias": alias, "version": present}
    if not present:
        raise PreconditionFailedError("alias-gone", **facts)
    if not expected:
        raise PreconditionFailedError("alias-exists", **facts)
    raise PreconditionFailedError("alias-moved", expected=expected, **facts)
