"""The artifacts of the features of tasks' rows; only the newest per base."""

from __future__ import annotations

from sqlalchemy import delete, select

from onboard.registry.clock import database_now
from onboard.registry.feature_tables import TaskFeaturesRow
from onboard.registry.repository import Repository
from onboard.registry.upsert import put_row


class TaskFeatureRepository(Repository):
    """Features of the rows of every task, by base."""

    def find(self, task: str, base_digest: str) -> str | None:
        """Return the artifact's digest, or None."""
        row = TaskFeaturesRow
        statement = select(row.artifact).where(row.task == task, row.base_digest == base_digest)
        return self._session.scalars(statement).one_or_none()

    def put(self, task: str, base_digest: str, artifact: str) -> None:
        """Store the artifact, replacing an earlier one."""
        values = {"artifact": artifact, "created_at": database_now()}
        put_row(self._session, TaskFeaturesRow, {"task": task, "base_digest": base_digest}, values)

    def remove(self, task: str) -> list[tuple[str, float]]:
        """Delete the rows of a task and return their artifacts and times."""
        row = TaskFeaturesRow
        gone = self._session.execute(delete(row).where(row.task == task).returning(row.artifact, row.created_at))
        return [(artifact, at) for artifact, at in gone]
