"""The table of annotations: what people say of texts in a labeling tool, before and after a version learns it."""

from __future__ import annotations

from sqlalchemy import Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import BigNumber, Table


class AnnotationRow(Table):
    """An annotation of a text, for a task that may not exist yet.

    `revision` counts the changes of a task's annotations; `label` is null where there is none any more.
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
