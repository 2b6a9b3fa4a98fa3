"""Bases and their hypernetwork versions, with one head per base."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from sqlalchemy import ColumnElement, func, insert, or_, select, update

from onboard.domain.task import BaseRecord, EmbeddingVersion, HypernetworkVersion, Task
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.clock import database_now
from onboard.registry.hypernetworks import hold_hypernetwork
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import BaseRow, HypernetworkRow
from onboard.registry.upsert import insert_for
from onboard.registry.versions import VersionRepository


class BaseRepository(Repository):
    """The registered bases."""

    def register(
        self, record: BaseRecord, hypernetwork: HypernetworkVersion, sources: Iterable[tuple[Task, EmbeddingVersion]]
    ) -> bool:
        """Register a base with its first hypernetwork and its shipped tasks. Repeated or concurrent calls are safe.

        If a shipped task exists already (from another base), it gets a new version, and its `latest` does not move.

        Returns:
            Whether the base was new. For a known base, location and name are updated.
        """
        statement = (
            insert_for(self._session, BaseRow)
            .values({**asdict(record), "head": hypernetwork.version, "created_at": database_now()})
            .on_conflict_do_nothing()
            .returning(BaseRow.digest)
        )
        if self._session.scalars(statement).one_or_none() is None:
            self._session.execute(
                update(BaseRow)
                .where(BaseRow.digest == record.digest)
                .values(location=record.location, name=record.name)
            )
            return False
        self._insert(hypernetwork)
        versions = VersionRepository(self._session)
        for task, draft in sources:
            versions.add(draft, task, move_latest=False, new_labels=True)
        return True

    def get(self, name_or_digest: str) -> BaseRecord:
        """Return the base with that digest, or the newest with that name. Raises NotFoundError."""
        row = self._session.scalars(
            select(BaseRow)
            .where(or_(BaseRow.digest == name_or_digest, BaseRow.name == name_or_digest))
            .order_by(BaseRow.created_at.desc())
            .limit(1)
        ).one_or_none()
        if row is None:
            raise NotFoundError("unknown-registered-base", name_or_digest=name_or_digest)
        return record_of(BaseRecord, row)

    def list(self) -> Sequence[BaseRecord]:
        """Return every base, oldest first."""
        return [
            record_of(BaseRecord, row) for row in self._session.scalars(select(BaseRow).order_by(BaseRow.created_at))
        ]

    def hypernetworks(self, base_digest: str) -> Sequence[HypernetworkVersion]:
        """Return the hypernetwork versions of a base, oldest first."""
        rows = self._session.scalars(
            select(HypernetworkRow).where(HypernetworkRow.base_digest == base_digest).order_by(HypernetworkRow.version)
        )
        return [record_of(HypernetworkVersion, row) for row in rows]

    def hypernetwork(self, base_digest: str, version: int) -> HypernetworkVersion:
        """Return one hypernetwork version. Raises NotFoundError."""
        row = self._session.scalars(
            select(HypernetworkRow).where(
                HypernetworkRow.base_digest == base_digest, HypernetworkRow.version == version
            )
        ).one_or_none()
        if row is None:
            raise NotFoundError("unknown-hypernetwork-version", base=base_digest, version=version)
        return record_of(HypernetworkVersion, row)

    def line(self, base_digest: str, version: int) -> Sequence[HypernetworkVersion]:
        """Return this version and its ancestors, newest first, including collected ones. Raises NotFoundError."""
        line = [self.hypernetwork(base_digest, version)]
        by_version = {hypernetwork.version: hypernetwork for hypernetwork in self.hypernetworks(base_digest)}
        while (parent := line[-1].parent) is not None:
            line.append(by_version[parent])
        return line

    def advance(self, draft: HypernetworkVersion, *, expected_head: int) -> HypernetworkVersion:
        """Add the next hypernetwork version and make it the head, if the head is still `expected_head`.

        Number, parent and time of the draft are set here.

        Raises:
            ConflictError: the head has moved.
        """
        self._swap_head(draft.base_digest, expected_head, expected_head)  # locks the base, and so the numbering
        newest = select(func.max(HypernetworkRow.version)).where(HypernetworkRow.base_digest == draft.base_digest)
        number = (self._session.scalars(newest).one() or 0) + 1
        added = self._insert(replace(draft, version=number, parent=expected_head))
        self._swap_head(draft.base_digest, expected_head, number)
        return added

    def set_head(self, base_digest: str, version: int, *, expected_head: int) -> None:
        """Make an existing version the head again.

        Raises:
            NotFoundError: the version does not exist.
            ConflictError: the head has moved, or the version's tensors were collected.
        """
        self.hypernetwork(base_digest, version)
        # lock the base first, as in `advance`, to avoid a deadlock
        self._swap_head(base_digest, expected_head, expected_head)
        hold_hypernetwork(self._session, base_digest, version)
        self._swap_head(base_digest, expected_head, version)

    def _swap_head(self, base_digest: str, expected: int, head: int) -> None:
        statement = (
            update(BaseRow)
            .where(BaseRow.digest == base_digest, BaseRow.head == expected)
            .values(head=head)
            .returning(BaseRow.digest)
        )
        if self._session.scalars(statement).one_or_none() is None:
            head_now = self.get(base_digest).head
            raise ConflictError("hypernetwork-changed", base=base_digest, head=head_now, expected=expected)
        if head != expected:
            self._retire(base_digest, expected, database_now())
            self._retire(base_digest, head, None)

    def _retire(self, base_digest: str, version: int, at: ColumnElement[float] | None) -> None:
        self._session.execute(
            update(HypernetworkRow)
            .where(HypernetworkRow.base_digest == base_digest, HypernetworkRow.version == version)
            .values(retired_at=at)
        )

    def _insert(self, draft: HypernetworkVersion) -> HypernetworkVersion:
        values = {**asdict(draft), "created_at": database_now()}
        row = self._session.scalars(insert(HypernetworkRow).values(values).returning(HypernetworkRow)).one()
        return record_of(HypernetworkVersion, row)
