"""Daily sums of the texts that versions answered. Several processes can add to the same day."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from sqlalchemy import delete, func, select, tuple_, update

from onboard.domain.drift import DriftDay, Sums, added, days_of
from onboard.registry.drift_tables import DriftDayRow
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import EmbeddingVersionRow
from onboard.registry.upsert import insert_for
from onboard.registry.versions import rows_of_pairs

Number = tuple[str, int]


class DriftRepository(Repository):
    """Daily sums by task and version."""

    def add(self, day: int, sums: Mapping[Number, Sums]) -> Collection[Number]:
        """Add to the sums of a day. Returns the versions that still exist; sums of deleted ones are dropped.

        Rows are locked in sorted order, so concurrent processes wait for each other instead of deadlocking.

        Args:
            sums: include the number of texts as `answered`.
        """
        version = EmbeddingVersionRow
        existing = select(version.task, version.version).with_for_update(read=True, key_share=True)
        order = version.task, version.version
        stored = sorted((task, number) for task, number in rows_of_pairs(self._session, existing, order, sorted(sums)))
        for number in stored:
            self._add(number, day, sums[number])
        return stored

    def _add(self, number: Number, day: int, sums: Sums) -> None:
        task, version = number
        row, key = DriftDayRow, {"task": task, "version": version, "day": day}
        values = {"texts": sums["answered"], "sums": sums, "looked": 0, "alarm": None}
        new = insert_for(self._session, row).values(**key, **values).on_conflict_do_nothing().returning(row.day)
        if self._session.scalar(new) is not None:
            return
        which = (row.task == task, row.version == version, row.day == day)
        before, texts = self._session.execute(select(row.sums, row.texts).where(*which).with_for_update()).one()
        try:
            both = added(before, sums)
        except (KeyError, ValueError, TypeError):  # another release stored different numbers: start the day over
            both = sums
        self._session.execute(update(row).where(*which).values(sums=both, texts=texts + sums["answered"]))

    def standing(self, task: str, version: int, week: int) -> tuple[int, int, bool]:
        """Return the texts of a week, how many there were at the last comparison, and whether there was an alarm."""
        row = DriftDayRow
        statement = select(
            func.coalesce(func.sum(row.texts), 0), func.coalesce(func.max(row.looked), 0), func.count(row.alarm)
        ).where(row.task == task, row.version == version, row.day.in_(days_of(week)))
        texts, looked, alarms = self._session.execute(statement).one()
        return int(texts), int(looked), bool(alarms)

    def days(self, task: str, version: int, first: int, last: int) -> Sequence[DriftDay]:
        """Return the days of a version from first to last, inclusive, in order."""
        row = DriftDayRow
        statement = select(row).where(row.task == task, row.version == version, row.day.between(first, last))
        return [record_of(DriftDay, day) for day in self._session.scalars(statement.order_by(row.day))]

    def set_look(self, number: Number, day: int, look: int, alarm: Mapping[str, object] | None) -> None:
        """Record that a week was compared. An earlier alarm of the day is kept."""
        task, version = number
        row = DriftDayRow
        statement = update(row).where(row.task == task, row.version == version, row.day == day)
        values = {"looked": look} if alarm is None else {"looked": look, "alarm": dict(alarm)}
        self._session.execute(statement.values(**values))

    def weeks_now(self, week: int) -> Sequence[tuple[str, int, int, bool]]:
        """Return task, version, texts and whether there was an alarm, for versions that answered texts in a week."""
        row = DriftDayRow
        statement = (
            select(row.task, row.version, func.sum(row.texts), func.count(row.alarm))
            .where(row.day.in_(days_of(week)))
            .group_by(row.task, row.version)
            .order_by(row.task, row.version)
        )
        return [(task, version, int(texts), bool(alarms)) for task, version, texts, alarms in
                self._session.execute(statement)]  # fmt: skip

    def remove_before(self, day: int, most: int) -> int:
        """Delete at most `most` rows of days before a day and return their number."""
        row = DriftDayRow
        key = row.task, row.version, row.day
        due = [tuple(row_key) for row_key in self._session.execute(select(*key).where(row.day < day).limit(most))]
        if due:
            self._session.execute(delete(row).where(tuple_(*key).in_(due)))
        return len(due)
