"""The table of the schema itself."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import Table


class CompatibilityRow(Table):
    """The oldest revision whose code works on this database. A single row, which migrations write."""

    __tablename__ = "schema_compatibility"
    oldest_code: Mapped[str] = mapped_column(primary_key=True)
