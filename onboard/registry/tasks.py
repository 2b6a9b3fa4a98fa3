"""Tasks: names with a label set that a resubmission has to match."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update

from onboard.domain.dataset import Kind, Label, label_text
from onboard.domain.names import did_you_mean
from onboard.domain.task import Task, label_keys
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.clock import database_now
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import TaskRow
from onboard.registry.upsert import insert_for


class TaskRepository(Repository):
    """The tasks of a deployment. The row of a deleted task remains, so that version numbers are not reused."""

    def get(self, name: str) -> Task:
        """Return a task. Raises NotFoundError."""
        task = self.find(name)
        if task is None:
            names = self._session.scalars(select(TaskRow.name).where(TaskRow.deleted_at.is_(None)))
            raise NotFoundError("unknown-task", task=name, guess=did_you_mean(name, names))
        return task

    def find(self, name: str) -> Task | None:
        """Return a task; None if it does not exist or was deleted."""
        row = self._session.scalars(
            select(TaskRow).where(TaskRow.name == name, TaskRow.deleted_at.is_(None))
        ).one_or_none()
        return None if row is None else record_of(Task, row)

    def held(self, name: str) -> Task | None:
        """Like `find`, and lock the task against publishing, deletion and alias moves until the transaction ends."""
        self._session.execute(select(TaskRow.name).where(TaskRow.name == name).with_for_update())
        return self.find(name)

    def list(self) -> Sequence[Task]:
        """Return every task by name."""
        rows = self._session.scalars(select(TaskRow).where(TaskRow.deleted_at.is_(None)).order_by(TaskRow.name))
        return [record_of(Task, row) for row in rows]

    def require_labels(self, name: str, kind: Kind, labels: Sequence[Label]) -> None:
        """Raise ConflictError if the task exists with another label set. Order does not matter; types do."""
        task = self.find(name)
        if task is not None:
            _require_same(task, kind, labels)

    def put(self, task: Task, *, new_labels: bool = False) -> Task:
        """Create the task, or update its words and bounds. The row is locked until the transaction ends.

        Raises:
            ConflictError: it exists with another label set, and `new_labels` is false.
        """
        values = {
            "kind": task.kind,
            "labels": list(task.labels),
            "words": list(task.words),
            "low": task.low,
            "high": task.high,
        }
        self._session.execute(
            insert_for(self._session, TaskRow)
            .values(
                name=task.name,
                source=task.source,
                last_version=0,
                created_at=database_now(),
                deleted_at=None,
                **values,
            )
            .on_conflict_do_nothing()
        )
        row = self._session.scalars(select(TaskRow).where(TaskRow.name == task.name).with_for_update()).one()
        if row.deleted_at is None and not new_labels:
            _require_same(record_of(Task, row), task.kind, task.labels)
        statement = update(TaskRow).where(TaskRow.name == task.name).values(deleted_at=None, **values)
        return record_of(Task, self._session.scalars(statement.returning(TaskRow)).one())


def _require_same(present: Task, kind: Kind, labels: Sequence[Label]) -> None:
    if present.kind == kind and label_keys(present.labels) == label_keys(labels):
        return
    had = ", ".join(map(repr, present.labels)) or present.kind
    now = ", ".join(map(repr, labels)) or kind
    if present.kind != kind and present.labels and labels:
        raise ConflictError("task-kind-differs", task=present.name, present=present.kind, wanted=kind)
    facts: dict[str, Any] = {
        "task": present.name, "present": list(present.labels), "wanted": list(labels), "had": had, "now": now,
    }  # fmt: skip
    if sorted(map(label_text, present.labels)) == sorted(map(label_text, labels)):
        raise ConflictError("label-types-differ", **facts)
    raise ConflictError("labels-differ", **facts)
