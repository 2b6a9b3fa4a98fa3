"""The versions that a base's tasks are served with, and the base's head, locked for decisions that depend on it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import case, exists, func, select

from onboard.domain.task import EmbeddingVersion
from onboard.registry.aliases import serves_version
from onboard.registry.repository import Repository
from onboard.registry.tables import AliasRow, BaseRow, EmbeddingVersionRow, HypernetworkRow, JobRow, TaskRow
from onboard.registry.versions import HAS_EMBEDDING, version_of


class InUseRepository(Repository):
    """The versions and canaries of aliases (`latest` is one), and the head that new versions are learned under."""

    def versions(self, base_digest: str) -> Sequence[EmbeddingVersion]:
        """Return every aliased version or canary with an embedding of a base's existing tasks, by task and number.

        The head does not affect versions without an embedding.
        """
        statement = (
            select(EmbeddingVersionRow)
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(
                TaskRow.deleted_at.is_(None),
                EmbeddingVersionRow.unlearning.is_(None),  # these are about to be replaced
                EmbeddingVersionRow.base_digest == base_digest,
                HAS_EMBEDDING,
                exists().where(serves_version()),
            )
            .order_by(EmbeddingVersionRow.task, EmbeddingVersionRow.version)
        )
        return [version_of(row) for row in self._session.scalars(statement)]

    def since(self, base_digest: str) -> dict[str, float]:
        """Return when each version was first pointed to by one of its current aliases, by reference."""
        row = EmbeddingVersionRow
        since = case((AliasRow.version == row.version, AliasRow.updated_at), else_=AliasRow.canary_at)
        statement = (
            select(row.task, row.version, func.min(since))
            .join(AliasRow, serves_version())
            .where(row.base_digest == base_digest)
            .group_by(row.task, row.version)
        )
        return {f"{task}@v{version}": moved for task, version, moved in self._session.execute(statement)}

    def tuned_by(self, base_digest: str) -> dict[int, str]:
        """Return the task that tuned each hypernetwork version of a base, by number, without the first."""
        statement = (
            select(HypernetworkRow.version, JobRow.task)
            .join(JobRow, JobRow.id == HypernetworkRow.job)
            .where(HypernetworkRow.base_digest == base_digest)
        )
        return dict(self._session.execute(statement).all())

    def hold_head(self, base_digest: str) -> int:
        """Return the base's head and lock it until the transaction ends. Several transactions can hold this lock.

        Publishing holds it, and moving the head waits for it. So a transaction that moves the head sees every version
        that was published before.
        """
        statement = select(BaseRow.head).where(BaseRow.digest == base_digest).with_for_update(read=True)
        return self._session.scalars(statement).one()
