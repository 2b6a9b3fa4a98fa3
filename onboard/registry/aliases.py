"""Aliases: movable names of versions, with their history. `latest` is one of them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from onboard.domain.names import require_alias
from onboard.domain.task import AliasMove
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.clock import database_now
from onboard.registry.tables import AliasMoveRow, AliasRow, EmbeddingVersionRow, TaskRow
from onboard.registry.upsert import insert_for

_ROLLBACK = "rollback"


class AliasRepository:
    """The aliases of every task."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, task: str, alias: str) -> int | None:
        """The version that the alias names, or None."""
        return self._session.scalars(
            select(AliasRow.version).where(AliasRow.task == task, AliasRow.alias == alias)
        ).one_or_none()

    def list(self, task: str) -> dict[str, int]:
        """Every alias of the task with its version."""
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
    ) -> AliasMove:
        """Point the alias at a version.

        Args:
            expected: the version that it must name at present (compare and swap); 0 means "no version yet".

        Raises:
            InputError: `alias` is not a name, or looks like a version number.
            NotFoundError: there is no such version.
            ConflictError: it names another version than `expected`.
        """
        require_alias(alias)
        self._lock(task)
        self._require_version(task, version)
        previous = self.find(task, alias)
        if expected is not None and expected != (previous or 0):
            raise ConflictError(
                f"{task}@{alias} is v{previous} now, not v{expected}."
                if previous
                else f"{task}@{alias} does not exist.",
                f"Look at it with: onboard versions {task}",
                task=task,
                alias=alias,
                version=previous,
            )
        self._session.execute(
            insert_for(self._session, AliasRow)
            .values(task=task, alias=alias, version=version, updated_at=database_now())
            .on_conflict_do_update(
                index_elements=["task", "alias"], set_={"version": version, "updated_at": database_now()}
            )
        )
        statement = insert(AliasMoveRow).values(
            task=task,
            alias=alias,
            version=version,
            previous=previous,
            at=database_now(),
            actor=actor,
            reason=reason,
        )
        return _move(self._session.scalars(statement.returning(AliasMoveRow)).one())

    def rollback(self, task: str, alias: str, *, actor: str | None = None) -> AliasMove:
        """Point the alias at the version that it named before its present one; again goes one further back.

        Raises:
            NotFoundError: there is no such alias.
            ConflictError: nothing came before.
        """
        self._lock(task)
        present = self.find(task, alias)
        if present is None:
            raise NotFoundError(f"There is no {task}@{alias}.", f"List them with: onboard versions {task}")
        arrival = self._session.scalars(
            select(AliasMoveRow)
            .where(
                AliasMoveRow.task == task,
                AliasMoveRow.alias == alias,
                AliasMoveRow.version == present,
                AliasMoveRow.reason != _ROLLBACK,
            )
            .order_by(AliasMoveRow.id.desc())
            .limit(1)
        ).one()
        if arrival.previous is None:
            raise ConflictError(f"{task}@{alias} was never anything but v{present}.", task=task, alias=alias)
        return self.move(task, alias, arrival.previous, actor=actor, reason=_ROLLBACK)

    def history(self, task: str, alias: str) -> Sequence[AliasMove]:
        """Every move of the alias, newest first."""
        rows = self._session.scalars(
            select(AliasMoveRow)
            .where(AliasMoveRow.task == task, AliasMoveRow.alias == alias)
            .order_by(AliasMoveRow.id.desc())
        )
        return [_move(row) for row in rows]

    def _lock(self, task: str) -> None:
        self._session.execute(select(TaskRow.name).where(TaskRow.name == task).with_for_update())

    def _require_version(self, task: str, version: int) -> None:
        found = self._session.scalars(
            select(EmbeddingVersionRow.version)
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(
                EmbeddingVersionRow.task == task,
                EmbeddingVersionRow.version == version,
                TaskRow.deleted_at.is_(None),
            )
        ).one_or_none()
        if found is None:
            raise NotFoundError(f"There is no {task}@v{version}.", f"List them with: onboard versions {task}")


def _move(row: AliasMoveRow) -> AliasMove:
    return AliasMove(
        task=row.task,
        alias=row.alias,
        version=row.version,
        previous=row.previous,
        at=row.at,
        actor=row.actor,
        reason=row.reason,
    )
