"""Named leases with one holder at a time, which expire by the database's clock."""

from __future__ import annotations

from sqlalchemy import delete, or_, select, update

from onboard.registry.clock import database_now, has_come
from onboard.registry.repository import Repository
from onboard.registry.tables import LeaseRow
from onboard.registry.upsert import insert_for


class LeaseRepository(Repository):
    """Leases such as "reconciler". A job holds leases under its id: heartbeats extend them, its end releases them."""

    def take(self, name: str, holder: str, seconds: float) -> bool:
        """Acquire or extend the lease for `seconds`. False if another holder has it."""
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
        """Return the current holder of the lease, or None."""
        statement = select(LeaseRow.holder).where(LeaseRow.name == name, ~has_come(LeaseRow.expires_at))
        return self._session.scalars(statement).one_or_none()

    def extend_all(self, holder: str, seconds: float) -> None:
        """Extend all valid leases of the holder."""
        self._session.execute(
            update(LeaseRow)
            .where(LeaseRow.holder == holder, LeaseRow.expires_at > database_now())
            .values(expires_at=database_now() + seconds)
        )

    def give_back_all(self, holder: str) -> None:
        """Release all leases of the holder."""
        self._session.execute(delete(LeaseRow).where(LeaseRow.holder == holder))

    def give_back(self, name: str, holder: str) -> None:
        """Release the lease early. Has no effect if another holder has it."""
        self._session.execute(delete(LeaseRow).where(LeaseRow.name == name, LeaseRow.holder == holder))
