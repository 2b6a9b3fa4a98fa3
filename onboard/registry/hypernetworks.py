"""Which hypernetwork versions are in use, and by which versions."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from onboard.domain.task import FIRST_HYPERNETWORK
from onboard.errors import ConflictError
from onboard.registry.aliases import serves_version
from onboard.registry.clock import database_now
from onboard.registry.repository import Repository
from onboard.registry.states import IS_OPEN
from onboard.registry.tables import BaseRow, EmbeddingVersionRow, HypernetworkRow, JobRow, TaskRow


@dataclass(frozen=True, slots=True)
class Pinned:
    """The versions that use a hypernetwork version, without those of deleted tasks.

    Args:
        versions: number of embedding versions that are served with it.
        tasks: number of their tasks.
        in_use: references of those that an alias points to.
        learned: number of versions that were learned under it and later carried to another one.
    """

    versions: int
    tasks: int
    in_use: tuple[str, ...]
    learned: int


class HypernetworkRepository(Repository):
    """A base's hypernetwork versions and the embedding versions that are pinned to them."""

    def counts(self, base_digest: str) -> dict[int, int]:
        """Count the embedding versions of existing tasks by hypernetwork version, without zeros."""
        base, number = EmbeddingVersionRow.base_digest, EmbeddingVersionRow.hypernetwork_version
        counted = select(base, number, func.count().label("versions")).group_by(base, number)
        deleted = select(TaskRow.name).where(TaskRow.deleted_at.is_not(None))
        # Count all with the index alone, then subtract the few of deleted tasks. The second query covers all bases,
        # because SQLite would otherwise read the whole index of bases.
        of_base = self._session.execute(counted.where(base == base_digest))
        counts = {row.hypernetwork_version: row.versions for row in of_base}
        for row in self._session.execute(counted.where(EmbeddingVersionRow.task.in_(deleted))):
            if row.base_digest == base_digest:
                counts[row.hypernetwork_version] -= row.versions
        return {version: count for version, count in counts.items() if count}

    def pinned(self, base_digest: str, version: int, most: int) -> Pinned:
        """Return the versions that are pinned to a hypernetwork version.

        Args:
            most: maximum number of references to return.
        """
        row = EmbeddingVersionRow
        living = and_(_is_living(), row.base_digest == base_digest)
        mine = and_(living, row.hypernetwork_version == version)
        in_alias = exists().where(serves_version())
        counted = select(func.count(), func.count(row.task.distinct())).where(mine)
        versions, tasks = self._session.execute(counted).one()
        named = select(row.task, row.version).where(mine, in_alias).order_by(row.task, row.version).limit(most)
        references = tuple(f"{task}@v{number}" for task, number in self._session.execute(named))
        carried = select(func.count()).select_from(row).where(living, row.learned_under == version)
        return Pinned(versions, tasks, references, self._session.scalars(carried).one())


def hold_hypernetwork(session: Session, base_digest: str, version: int) -> None:
    """Protect a version from collection until the transaction ends. Call this before referring to it.

    Raises:
        ConflictError: it was collected, or descends from a deleted task that is to be unlearned.
    """
    statement = (
        select(HypernetworkRow.collected_at, HypernetworkRow.unlearning)
        .where(HypernetworkRow.base_digest == base_digest, HypernetworkRow.version == version)
        .with_for_update(read=True)
    )
    collected_at, unlearning = session.execute(statement).one_or_none() or (None, None)
    if collected_at is not None or unlearning is not None:
        gone = "was collectedbecause nothing needed it any more"
        why = f"descends from the deleted task {unlearning}" if collected_at is None else gone
        raise ConflictError("hypernetwork-not-usable", base=base_digest, version=version, reason=why)


def unneeded(older_than_seconds: float) -> ColumnElement[bool]:
    """Condition: a hypernetwork version's tensors may be deleted.

    Kept are the first version, the head, the head's parent (for a rollback), and every version that an embedding
    version of an existing task is served with or was learned under. Versions that were the head or were made recently
    are kept, too, because a job that started under them may still publish.
    """
    row, head = HypernetworkRow, aliased(HypernetworkRow)
    is_head = exists().where(BaseRow.digest == row.base_digest, BaseRow.head == row.version)
    before_head = exists().where(
        BaseRow.digest == row.base_digest,
        head.base_digest == row.base_digest,
        head.version == BaseRow.head,
        head.parent == row.version,
    )
    stands_under = or_(
        EmbeddingVersionRow.hypernetwork_version == row.version, EmbeddingVersionRow.learned_under == row.version
    )
    used = exists().where(_is_living(), EmbeddingVersionRow.base_digest == row.base_digest, stands_under)
    still_tuned = exists().where(JobRow.id == row.job, IS_OPEN)
    return and_(
        row.collected_at.is_(None),
        row.version != FIRST_HYPERNETWORK,
        func.coalesce(row.retired_at, row.created_at) <= database_now() - older_than_seconds,
        *(~condition for condition in (is_head, before_head, used, still_tuned)),
    )


def _is_living() -> ColumnElement[bool]:
    """Condition: an embedding version belongs to a task that was not deleted."""
    return exists().where(TaskRow.name == EmbeddingVersionRow.task, TaskRow.deleted_at.is_(None))
