"""The annotations of a task, from a labeling tool that may send them twice, late or out of order."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import delete, func, select, update

from onboard.domain.annotation import Annotation, Text
from onboard.registry.annotation_tables import AnnotationRow
from onboard.registry.repository import Repository


class AnnotationRepository(Repository):
    """Annotations from labeling tools."""

    def put(self, task: str, annotation: Annotation) -> bool:
        """Store an annotation unless a later one is stored. Returns whether anything changed.

        A repeated message changes nothing. A message without a text, such as a deletion, keeps the stored text.
        """
        key = (task, annotation.project, annotation.number)
        row = self._session.get(AnnotationRow, key, with_for_update=True)
        if row is not None and row.updated_at > annotation.updated_at:
            return False
        text = annotation.text if annotation.text is not None else _text_of(row)
        if row is not None and (_text_of(row), row.label) == (text, annotation.label):
            row.updated_at = annotation.updated_at
            return False
        if row is None:
            row = AnnotationRow(task=task, project=annotation.project, number=annotation.number, published=False)
            self._session.add(row)
        row.text_a, row.text_b = text if text is not None else (None, None)
        row.label, row.updated_at, row.revision = annotation.label, annotation.updated_at, self._next_revision(task)
        self._session.flush()
        return True

    def _next_revision(self, task: str) -> int:
        """Return the next revision. Locks the newest row, so that no two changes get the same one."""
        newest = select(AnnotationRow.number).where(AnnotationRow.task == task).order_by(AnnotationRow.revision.desc())
        with self._session.no_autoflush:
            self._session.scalars(newest.limit(1).with_for_update()).all()
        return self.revision(task) + 1

    def revision(self, task: str) -> int:
        """Return the number of changes to the task's annotations."""
        with self._session.no_autoflush:
            newest = self._session.scalar(select(func.max(AnnotationRow.revision)).where(AnnotationRow.task == task))
        return newest or 0

    def list(self, task: str) -> Sequence[Annotation]:
        """Return all annotations of the task in order of revision."""
        statement = select(AnnotationRow).where(AnnotationRow.task == task).order_by(AnnotationRow.revision)
        return [
            Annotation(row.project, row.number, _text_of(row), row.label, row.updated_at, row.published)
            for row in self._session.scalars(statement)
        ]

    def mark_published(self, task: str, until: int, gone: Collection[Text]) -> None:
        """Mark the labels up to this revision as published, and those of the deleted texts as not published."""
        row = AnnotationRow
        up_to_revision = (row.task == task, row.revision <= until)
        self._session.execute(update(row).where(*up_to_revision, row.label.is_not(None)).values(published=True))
        for text_a, text_b in gone:
            same = (row.text_a == text_a, row.text_b.is_(None) if text_b is None else row.text_b == text_b)
            self._session.execute(update(row).where(row.task == task, *same).values(published=False))

    def remove(self, task: str) -> int:
        """Delete all annotations of a task and return their number."""
        gone = self._session.execute(delete(AnnotationRow).where(AnnotationRow.task == task))
        return int(getattr(gone, "rowcount", 0))


def _text_of(row: AnnotationRow | None) -> Text | None:
    return None if row is None or row.text_a is None else (row.text_a, row.text_b)
