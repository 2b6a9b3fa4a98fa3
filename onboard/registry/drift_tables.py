"""The table of daily sums of the texts that versions answered. It contains no texts."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import BigNumber, Table


class DriftDayRow(Table):
    """The texts that a version answered on one day. All processes that answer add to the same row.

    `day` counts from 1970-01-01. `looked` is the number of texts in its week at the last comparison, and `alarm` its
    result if it raised an alarm.
    """

    __tablename__ = "drift_days"
    task: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    day: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, index=True)
    texts: Mapped[int] = mapped_column(BigNumber)
    sums: Mapped[dict[str, Any]]
    looked: Mapped[int] = mapped_column(BigNumber)
    alarm: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    __table_args__ = (
        ForeignKeyConstraint(
            ["task", "version"], ["embedding_versions.task", "embedding_versions.version"], ondelete="CASCADE"
        ),
    )
