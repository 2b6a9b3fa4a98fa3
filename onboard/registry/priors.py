"""The priors of bases: separate version lines for single texts and pairs, with the lessons of each version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, insert, or_, select, update
from sqlalchemy.orm import aliased

from onboard.domain.names import LATEST
from onboard.domain.prior import FORMS, Form, PriorVersion, Taught, form_of
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.aliases import names_version
from onboard.registry.clock import database_now
from onboard.registry.prior_tables import PriorLessonRow, PriorRow
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import (
    AliasMoveRow,
    AliasRow,
    BaseRow,
    EmbeddingVersionRow,
    JobRow,
    SnapshotRow,
    TaskRow,
)


class PriorRepository(Repository):
    """The existing priors, and the lessons to fit new ones to."""

    def list(self, base_digest: str) -> Sequence[PriorVersion]:
        """Return every version of a base's priors, by form and number."""
        statement = (
            select(PriorRow).where(PriorRow.base_digest == base_digest).order_by(PriorRow.form, PriorRow.version)
        )
        return [_version(row) for row in self._session.scalars(statement)]

    def head(self, base_digest: str, form: Form) -> PriorVersion | None:
        """Return the version that new tasks are learned with; None before the first, and while a deleted task is
        removed.
        """
        statement = select(PriorRow).where(_is_of(base_digest, form), PriorRow.retired_at.is_(None))
        row = self._session.scalars(statement.order_by(PriorRow.version.desc()).limit(1)).one_or_none()
        return None if row is None else _version(row)

    def has_any(self, base_digest: str, form: Form) -> bool:
        """Return whether a version was ever fitted, even if none is the head now."""
        return bool(self._session.scalar(select(exists().where(_is_of(base_digest, form)))))

    def get(self, base_digest: str, form: Form, version: int) -> PriorVersion:
        """Return one version. Raises NotFoundError."""
        row = self._session.get(PriorRow, (base_digest, form, version))
        if row is None:
            raise NotFoundError("unknown-prior-version", base=base_digest, form=form, version=version)  # fmt: skip
        return _version(row)

    def lessons(self, prior: PriorVersion) -> Sequence[Taught]:
        """Return the lessons that a version was fitted to, by task."""
        row = PriorLessonRow
        within = and_(row.since <= prior.version, or_(row.until.is_(None), row.until > prior.version))
        statement = select(row.task, row.version, row.lesson, row.shipped).where(
            row.base_digest == prior.base_digest, row.form == prior.form, within
        )
        return [Taught(*taught) for taught in self._session.execute(statement.order_by(row.task))]

    def present(self, base_digest: str) -> Mapping[Form, Sequence[Taught]]:
        """Return the current lessons of tasks published here: those of `latest` of every existing task on the base."""
        version = EmbeddingVersionRow
        statement = (
            select(version.task, version.version, version.lesson, version.pairs)
            .join(TaskRow, TaskRow.name == version.task)
            .join(AliasRow, and_(names_version(), AliasRow.alias == LATEST))
            .where(TaskRow.deleted_at.is_(None), version.base_digest == base_digest, version.lesson.is_not(None))
            .order_by(version.task)
        )
        taught: dict[Form, list[Taught]] = {form: [] for form in FORMS}
        for task, number, lesson, pairs in self._session.execute(statement):
            taught[form_of(pairs=bool(pairs))].append(Taught(task, number, lesson or ""))
        return taught

    def shipped(self, base_digest: str) -> Mapping[str, int]:
        """Return the base's source tasks that were not deleted, with their version."""
        version = EmbeddingVersionRow
        statement = (
            select(version.task, func.max(version.version))
            .join(TaskRow, TaskRow.name == version.task)
            .where(TaskRow.deleted_at.is_(None), version.base_digest == base_digest, version.kind == "source")
            .group_by(version.task)
        )
        return dict(self._session.execute(statement).all())

    def advance(self, draft: PriorVersion, taught: Iterable[Taught], *, expected: int | None) -> PriorVersion:
        """Add the next version, fitted to these lessons, and make it the head, if the head is still `expected`.

        Number and time of the draft are set here.

        Raises:
            ConflictError: the head has moved.
        """
        base, form = draft.base_digest, draft.form
        self._session.execute(select(BaseRow.digest).where(BaseRow.digest == base).with_for_update())
        head = self.head(base, form)
        if (head.version if head else None) != expected:
            raise ConflictError("prior-refitted-meanwhile", base=base, form=form)
        newest = select(func.max(PriorRow.version)).where(_is_of(base, form))
        number = (self._session.scalars(newest).one() or 0) + 1
        self.retire(base, form)
        row = self._session.scalars(
            insert(PriorRow)
            .values({**asdict(replace(draft, version=number)), "left_out": list(draft.left_out),
                     "created_at": database_now()})
            .returning(PriorRow)
        ).one()  # fmt: skip
        self._open(base, form, number, taught)
        return _version(row)

    def _open(self, base: str, form: Form, number: int, taught: Iterable[Taught]) -> None:
        """Record the lessons of a new version. Lessons that it no longer uses end with the previous version."""
        row, now = PriorLessonRow, {lesson.task: lesson for lesson in taught}
        is_open = and_(row.base_digest == base, row.form == form, row.until.is_(None))
        before = {
            task: Taught(task, version, lesson, shipped)
            for task, version, lesson, shipped in self._session.execute(
                select(row.task, row.version, row.lesson, row.shipped).where(is_open)
            )
        }
        for task in [task for task in before if now.get(task) != before[task]]:
            self._session.execute(update(row).where(is_open, row.task == task).values(until=number))
        fresh = [lesson for task, lesson in now.items() if before.get(task) != lesson]
        if fresh:
            facts = {"base_digest": base, "form": form, "since": number, "until": None}
            self._session.execute(insert(row), [{**facts, **asdict(lesson)} for lesson in fresh])

    def retire(self, base_digest: str, form: str) -> None:
        """Remove the head until the next version is added."""
        statement = update(PriorRow).where(_is_of(base_digest, form), PriorRow.retired_at.is_(None))
        self._session.execute(statement.values(retired_at=database_now()))

    def forget(self, task: str) -> Sequence[tuple[str, str]]:
        """Retire all heads that were fitted to a deleted task's lesson.

        Returns:
            The bases and forms that have no head because of it.
        """
        heads = select(PriorRow.base_digest, PriorRow.form).where(PriorRow.retired_at.is_(None), _knows(task))
        lost = [(base, form) for base, form in self._session.execute(heads)]
        self._session.execute(update(PriorRow).where(_knows(task)).values(unlearning=task))
        for base, form in lost:
            self.retire(base, form)
        return lost

    def fitted_to(self, task: str) -> frozenset[tuple[str, str, int]]:
        """Return the versions (base, form, number) that were fitted to a lesson of a task, deleted or not."""
        statement = select(PriorRow.base_digest, PriorRow.form, PriorRow.version).where(_knows(task))
        return frozenset((base, form, number) for base, form, number in self._session.execute(statement))

    def row_hashes(self, taught: Iterable[Taught]) -> Mapping[str, str]:
        """Return the artifact of the row hashes behind each lesson, by task, where it is known."""
        version_of = {lesson.task: lesson.version for lesson in taught if not lesson.shipped}
        statement = select(EmbeddingVersionRow.task, EmbeddingVersionRow.version, SnapshotRow.row_hashes).join(
            SnapshotRow, SnapshotRow.digest == EmbeddingVersionRow.dataset_digest
        )
        rows = self._session.execute(statement.where(EmbeddingVersionRow.lesson.is_not(None)))
        return {task: hashes for task, version, hashes in rows if version_of.get(task) == version}

    def last_change(self) -> tuple[int, float]:
        """Return a value that changes when the lessons may have changed: the newest alias move, and the last deletion
        of a task.
        """
        moved = self._session.scalar(select(func.max(AliasMoveRow.id)))
        deleted = self._session.scalar(select(func.max(TaskRow.deleted_at)))
        return moved or 0, deleted or 0.0

    def may_be_due(self) -> bool:
        """Return whether a prior may need fitting: an alias moved or a task was deleted since the last fit."""
        teaches = self._session.scalar(select(exists().where(EmbeddingVersionRow.lesson.is_not(None))))
        fitted = self._session.scalar(select(func.max(PriorRow.created_at)))
        if not teaches and fitted is None:
            return False
        moved = self._session.scalar(select(func.max(AliasMoveRow.at))) or 0.0
        deleted = self._session.scalar(select(func.max(TaskRow.deleted_at))) or 0.0
        return fitted is None or max(moved, deleted) >= fitted

    def helped(self, base_digest: str, limit: int) -> Sequence[tuple[str, float, dict[str, Any]]]:
        """Return the contribution of earlier tasks to the newest versions of a base, with reference and time, oldest
        first. A job counts once, with its last version.
        """
        version, facts, follower = EmbeddingVersionRow, JobRow.result["prior"], aliased(EmbeddingVersionRow)
        is_last = ~exists().where(follower.job == version.job, follower.version > version.version)
        statement = (
            select(version.task, version.version, version.created_at, facts)
            .join(JobRow, JobRow.id == version.job)
            .join(TaskRow, TaskRow.name == version.task)
            .where(version.base_digest == base_digest, TaskRow.deleted_at.is_(None), version.lesson.is_not(None))
            .where(is_last)
            .order_by(version.created_at.desc())
            .limit(limit)
        )
        rows = self._session.execute(statement).all()
        return [
            (f"{task}@v{number}", at, contribution) for task, number, at, contribution in reversed(rows) if contribution
        ]


def _is_of(base_digest: str, form: str) -> ColumnElement[bool]:
    return and_(PriorRow.base_digest == base_digest, PriorRow.form == form)


def _knows(task: str) -> ColumnElement[bool]:
    """Condition: a version of the prior was fitted to a lesson of the task."""
    row = PriorLessonRow
    return exists().where(
        row.task == task, row.base_digest == PriorRow.base_digest, row.form == PriorRow.form,
        row.since <= PriorRow.version, or_(row.until.is_(None), row.until > PriorRow.version),
    )  # fmt: skip


def _version(row: PriorRow) -> PriorVersion:
    return record_of(PriorVersion, row)
