"""The tables of quotas: what each owner may have, and which stored bytes count for whom."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import BigNumber, Table


class QuotaRow(Table):
    """The limits of an owner. Whoever uses some of them locks the row, so that two cannot take the last place."""

    __tablename__ = "quotas"
    owner: Mapped[str] = mapped_column(primary_key=True)
    max_jobs: Mapped[int | None] = mapped_column(BigNumber)
    max_bytes: Mapped[int | None] = mapped_column(BigNumber)
    updated_at: Mapped[float]


class OwnedArtifactRow(Table):
    """An artifact that counts for an owner, until it is collected. No foreign key: counting keeps nothing alive."""

    __tablename__ = "owned_artifacts"
    owner: Mapped[str] = mapped_column(primary_key=True)
    artifact: Mapped[str] = mapped_column(primary_key=True, index=True)
    size_bytes: Mapped[int] = mapped_column(BigNumber)
