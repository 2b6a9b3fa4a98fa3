"""Unlearning in the registry: descendants of a deleted task are marked, then replaced by versions rebuilt without it.

Nothing new starts from a marked version, and no marked hypernetwork becomes the head again. Marked versions are served
until their replacement is published.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sqlalchemy import ColumnElement, and_, exists, or_, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from onboard.domain.descent import Descent, Link
from onboard.domain.names import Reference
from onboard.errors import ConflictError, InputError
from onboard.registry.aliases import AliasRepository, names_version
from onboard.registry.artifacts import ArtifactRepository
from onboard.registry.clock import database_now, read_clock
from onboard.registry.deleting import DeletingRepository, Removed
from onboard.registry.repository import Repository
from onboard.registry.tables import AliasRow, EmbeddingVersionRow, HypernetworkRow

REBUILT = "rebuilt without a deleted task"  # reason of alias moves


class UnlearningRepository(Repository):
    """Marks and replaces versions. `artifacts` may be unused because of rows that this object deleted."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.artifacts: dict[str, float] = {}

    def mark(self, task: str, references: Iterable[str], hypernetworks: Iterable[Link]) -> None:
        """Mark versions and hypernetworks that descend from a deleted task."""
        row, link = EmbeddingVersionRow, HypernetworkRow
        for reference in references:
            name, number = _numbered(reference)
            statement = update(row).where(row.task == name, row.version == number)
            self._session.execute(statement.values(unlearning=task))
        for base, number in hypernetworks:
            statement = update(link).where(link.base_digest == base, link.version == number)
            self._session.execute(statement.values(unlearning=task))

    def is_news(self, descendants: Descent) -> bool:
        """Return whether any descendant is not marked yet."""
        row, link = EmbeddingVersionRow, HypernetworkRow
        versions = tuple_(row.task, row.version).in_([_numbered(reference) for reference in descendants.versions])
        links = tuple_(link.base_digest, link.version).in_(list(descendants.hypernetworks))
        unmarked = or_(
            exists().where(versions, row.unlearning.is_(None)), exists().where(links, link.unlearning.is_(None))
        )
        return bool(self._session.scalar(select(unmarked)))

    def unmarked(self, base_digest: str) -> frozenset[int]:
        """Return the unmarked, uncollected hypernetwork versions of a base. The first version is always among them."""
        row = HypernetworkRow
        statement = select(row.version).where(
            row.base_digest == base_digest, row.unlearning.is_(None), row.collected_at.is_(None)
        )
        return frozenset(self._session.scalars(statement))

    def replace(self, task: str, references: Collection[str], version: int) -> Sequence[str]:
        """Move all aliases and canaries of the task's marked versions to a new version, and delete the marked ones.

        Returns:
            The aliases that were moved; their canaries have ended.
        """
        of_task = [reference for reference in references if _numbered(reference)[0] == task]
        marked = and_(_names_one(AliasRow.task, AliasRow.version, of_task), _is_marked())
        aliases = sorted(self._session.scalars(select(AliasRow.alias).where(marked)))
        for alias in aliases:
            AliasRepository(self._session).move(task, alias, version, reason=REBUILT)
        self._replace_canaries(task, of_task, version)
        self.remove(of_task)
        return aliases

    def _replace_canaries(self, task: str, references: Collection[str], version: int) -> None:
        """Let a new version take the place of canaries, unless it is the version of their alias already."""
        aliases, gone = AliasRepository(self._session), {_numbered(reference)[1] for reference in references}
        present = aliases.list(task)
        for alias, canary in aliases.canaries(task).items():
            if canary.version not in gone:
                continue
            if present[alias] == version:
                aliases.end_canary(task, alias, because=REBUILT)
            else:
                aliases.start_canary(task, alias, version, canary.share, reason=f"canary: {REBUILT}")

    def remove(self, references: Collection[str]) -> None:
        """Delete versions if they are marked, and marked hypernetworks that become unused.

        Their artifacts become due for collection at once.
        """
        row = EmbeddingVersionRow
        which = and_(_names_one(row.task, row.version, references), row.unlearning.is_not(None))
        removed = Removed()
        DeletingRepository(self._session).remove_versions(which, removed)
        removed.freed(self._collect_hypernetworks())
        self.artifacts |= removed.artifacts
        ArtifactRepository(self._session).outdate(removed.artifacts)

    def _collect_hypernetworks(self) -> Sequence[tuple[str, float]]:
        """Delete the tensors of marked hypernetworks that no version is pinned to or was learned under."""
        row, version = HypernetworkRow, EmbeddingVersionRow
        needs = or_(version.hypernetwork_version == row.version, version.learned_under == row.version)
        needed = exists().where(version.base_digest == row.base_digest, needs)
        due = and_(row.unlearning.is_not(None), row.collected_at.is_(None), ~needed)
        statement = select(row.base_digest, row.version, row.artifact).where(due).with_for_update()
        rows = self._session.execute(statement).all()
        if not rows:
            return []
        links = tuple_(row.base_digest, row.version).in_([(base, number) for base, number, _ in rows])
        self._session.execute(update(row).where(links).values(artifact=None, collected_at=database_now()))
        now = read_clock(self._session)
        return [(artifact, now) for _, _, artifact in rows if artifact is not None]


def require_not_unlearning(session: Session, references: Iterable[str]) -> None:
    """Raise ConflictError if any of the versions descends from a deleted task."""
    row = EmbeddingVersionRow
    for reference in references:
        try:
            name, number = _numbered(reference)
        except InputError:
            continue  # random, mean, an anchor
        marked = select(row.unlearning).where(row.task == name, row.version == number)
        deleted = session.scalars(marked).one_or_none()
        if deleted is not None:
            raise ConflictError("version-being-rebuilt", version=reference, deleted=deleted, name=name)


def _names_one(
    task: InstrumentedAttribute[str], number: InstrumentedAttribute[int], references: Collection[str]
) -> ColumnElement[bool]:
    return tuple_(task, number).in_([_numbered(reference) for reference in references])


def _is_marked() -> ColumnElement[bool]:
    """Condition: the version that an alias points to is marked."""
    return exists().where(names_version(), EmbeddingVersionRow.unlearning.is_not(None))


def _numbered(reference: str) -> tuple[str, int]:
    """Return task and number of `task@vN`. Raises InputError."""
    named = Reference.parse(reference)
    if named.version is None:
        raise InputError("version-number-missing", reference=reference)
    return named.task, named.version
