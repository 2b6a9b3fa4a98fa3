"""The table of annotations: labels from a labeling tool, before and after a version learns them."""

from __future__ import annotations

from sqlalchemy import Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import BigNumber, Table


class AnnotationRow(Table):
    """An annotation of a text, for a task that may not exist yet.

    `revision` counts the changes to a task's annotations. `label` is null if the annotation was removed.
    """

    __tablename__ = "annotations"
    task: Mapped[str] = mapped_column(primary_key=True)
    project: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[str] = mapped_column(primary_key=True)
    text_a: Mapped[str | None] = mapped_column(Text)
    text_b: Mapped[str | None] = mapped_column(Text)
    label: Mapped[str | None] = mapped_column(Text)
    updated_at: Mapped[float]
    revision: Mapped[int] = mapped_column(BigNumber)
    published: Mapped[bool]
    __table_args__ = (Index("ix_annotations_task_revision", "task", "revision"),)
