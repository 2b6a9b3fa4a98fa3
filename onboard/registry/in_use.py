"""What a base's tasks are served with now, and the base's head held still while something is decided by that."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import exists, func, select

from onboard.domain.task import EmbeddingVersion
from onboard.registry.aliases import names_version
from onboard.registry.repository import Repository
from onboard.registry.tables import AliasRow, BaseRow, EmbeddingVersionRow, HypernetworkRow, JobRow, TaskRow
from onboard.registry.versions import HAS_EMBEDDING, version_of


class InUseRepository(Repository):
    """The versions that aliases name (`latest` is one), and the head that new ones are learned under."""

    def versions(self, base_digest: str) -> Sequence[EmbeddingVersion]:
        """Every aliased version of a base's living tasks that has an embedding, by task and number.

        No head touches the others.
        """
        statement = (
            select(EmbeddingVersionRow)
            .join(TaskRow, TaskRow.name == EmbeddingVersionRow.task)
            .where(
                TaskRow.deleted_at.is_(None),
                EmbeddingVersionRow.unlearning.is_(None),  # these are about to be replaced
                EmbeddingVersionRow.base_digest == base_digest,
                HAS_EMBEDDING,
                exists().where(names_version()),
            )
            .order_by(EmbeddingVersionRow.task, EmbeddingVersionRow.version)
        )
        return [version_of(row) for row in self._session.scalars(statement)]

    def since(self, base_digest: str) -> dict[str, float]:
        """For how long an alias has named each of these versions, by reference: when the first of its aliases moved."""
        row = EmbeddingVersionRow
        statement = (
            select(row.task, row.version, func.min(AliasRow.updated_at))
            .join(AliasRow, names_version())
            .where(row.base_digest == base_digest)
            .group_by(row.task, row.version)
        )
        return {f"{task}@v{version}": moved for task, version, moved in self._session.execute(statement)}

    def tuned_by(self, base_digest: str) -> dict[int, str]:
        """The task whose job tuned each hypernetwork version of a base, by number; without the first."""
        statement = (
            select(HypernetworkRow.version, JobRow.task)
            .join(JobRow, JobRow.id == HypernetworkRow.job)
            .where(HypernetworkRow.base_digest == base_digest)
        )
        return dict(self._session.execute(statement).all())

    def hold_head(self, base_digest: str) -> int:
        """The base's head, which nobody moves until the transaction ends; others may hold it at the same time.

        Whoever publishes holds it, and whoever moves it waits for them: so every version that was published before a
        move can be seen by the one who moves.
        """
        statement = select(BaseRow.head).where(BaseRow.digest == base_digest).with_for_update(read=True)
        return self._session.scalars(statement).one()
