"""Named rights that one holder has at a time, until they expire by the database's clock."""

from __future__ import annotations

from sqlalchemy import delete, or_, select, update

from onboard.registry.clock import database_now, has_come
from onboard.registry.repository import Repository
from onboard.registry.tables import LeaseRow
from onboard.registry.upsert import insert_for


class LeaseRepository(Repository):
    """Leases such as "reconciler". A job holds some by its id: its heartbeat extends them, its end gives them back."""

    def take(self, name: str, holder: str, seconds: float) -> bool:
        """Take or extend the lease for `seconds`. False when another holder has it."""
        lease = {"holder": holder, "expires_at": database_now() + seconds}
        statement = (
            insert_for(self._session, LeaseRow)
            .values(name=name, **lease)
            .on_conflict_do_update(
                index_elements=["name"],
                set_=lease,
                where=or_(LeaseRow.holder == holder, has_come(LeaseRow.expires_at)),
            )
            .returning(LeaseRow.name)
        )
        return self._session.scalars(statement).one_or_none() is not None

    def holder(self, name: str) -> str | None:
        """Who has the lease now, or None."""
        statement = select(LeaseRow.holder).where(LeaseRow.name == name, ~has_come(LeaseRow.expires_at))
        return self._session.scalars(statement).one_or_none()

    def extend_all(self, holder: str, seconds: float) -> None:
        """Extend whatever the holder still has."""
        self._session.execute(
            update(LeaseRow)
            .where(LeaseRow.holder == holder, LeaseRow.expires_at > database_now())
            .values(expires_at=database_now() + seconds)
        )

    def give_back_all(self, holder: str) -> None:
        """Give back whatever the holder has."""
        self._session.execute(delete(LeaseRow).where(LeaseRow.holder == holder))

    def give_back(self, name: str, holder: str) -> None:
        """Give the lease back early; nothing happens when another holder has it."""
        self._session.execute(delete(LeaseRow).where(LeaseRow.name == name, LeaseRow.holder == holder))
