"""The tables of the priors of bases."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry.declared import Table


class PriorRow(Table):
    """A version of a base's prior for single texts or for pairs. The head is the version that is not retired.

    The numbers are not stored, because they are computed from the lessons.
    """

    __tablename__ = "prior_versions"
    base_digest: Mapped[str] = mapped_column(ForeignKey("bases.digest"), primary_key=True)
    form: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str]
    fitted: Mapped[str]
    lessons: Mapped[int]
    left_out: Mapped[list[Any]]
    reason: Mapped[str] = mapped_column(Text)
    created_at: Mapped[float]
    retired_at: Mapped[float | None]
    unlearning: Mapped[str | None]  # the deleted task that it was fitted to


class PriorLessonRow(Table):
    """A lesson, and the prior versions that were fitted to it: from `since` to before `until`."""

    __tablename__ = "prior_lessons"
    base_digest: Mapped[str] = mapped_column(ForeignKey("bases.digest"), primary_key=True)
    form: Mapped[str] = mapped_column(primary_key=True)
    task: Mapped[str] = mapped_column(primary_key=True)
    since: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    until: Mapped[int | None]
    version: Mapped[int]  # of the task
    lesson: Mapped[str]  # digest; for a deleted task, its artifact no longer exists
    shipped: Mapped[bool]
