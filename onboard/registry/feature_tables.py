"""The table of encoder features of a task's rows, so that no text is encoded twice."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import Table


class TaskFeaturesRow(Table):
    """The encoder features of a base for the rows of a task's newest version."""

    __tablename__ = "task_features"
    task: Mapped[str] = mapped_column(ForeignKey("tasks.name"), primary_key=True)
    base_digest: Mapped[str] = mapped_column(ForeignKey("bases.digest"), primary_key=True)
    artifact: Mapped[str] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    created_at: Mapped[float]
