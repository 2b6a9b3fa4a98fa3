"""Transitions of jobs, counted from their events. The counters never decrease, although rows are deleted.

`fold` adds settled events to `job_transitions`. Queries combine that table with later events in one statement, so
neither claims nor scrapes read old events. Code that deletes jobs folds first, in the same transaction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Double, Select, String, and_, case, func, literal, or_, select, union_all
from sqlalchemy.orm import aliased

from onboard.domain.job import JobState
from onboard.domain.transition import BUCKET_SECONDS, LOST, NEW, Transition
from onboard.registry.clock import database_now
from onboard.registry.repository import Repository
from onboard.registry.tables import JobEventRow, JobRow, JobTransitionRow
from onboard.registry.upsert import insert_for

# PostgreSQL may commit a lower id after a higher one. After this time, no transaction that writes an event is still
# open.
SETTLED_SECONDS: Final = 120.0
_COLUMNS: Final = ("previous", "state", "queue", "up_to_seconds", "count", "seconds")


class TransitionRepository(Repository):
    """Counts state transitions of the jobs of a deployment."""

    def list(self) -> Sequence[Transition]:
        """Return all transitions ever counted."""
        folded = JobTransitionRow.__table__
        since = _counted(JobEventRow.id > _newest_folded()).subquery()
        both = union_all(*(select(*[source.c[name] for name in _COLUMNS]) for source in (folded, since))).subquery()
        key = (both.c.previous, both.c.state, both.c.queue, both.c.up_to_seconds)
        rows = self._session.execute(select(*key, func.sum(both.c.count), func.sum(both.c.seconds)).group_by(*key))
        return [
            Transition(previous, JobState(state), queue, up_to, int(count), float(seconds))
            for previous, state, queue, up_to, count, seconds in rows
        ]

    def fold(self, settled_seconds: float = SETTLED_SECONDS) -> None:
        """Count the events since the last call, except those of the last `settled_seconds`.

        Call this before deleting jobs, in the same transaction. Their last events have settled long ago.
        """
        if self._session.get_bind().dialect.name == "postgresql":  # SQLite has a single writer
            self._session.execute(select(func.pg_advisory_xact_lock(func.hashtext("onboard.transitions"))))
        settled = and_(JobEventRow.id > _newest_folded(), JobEventRow.at <= database_now() - settled_seconds)
        newest = self._session.scalars(select(func.max(JobEventRow.id)).where(settled)).one()
        if newest is None:
            return
        counted = _counted(and_(JobEventRow.id > _newest_folded(), JobEventRow.id <= newest))
        counts = [dict(row) for row in self._session.execute(counted).mappings()]
        if counts:
            self._add(counts)

    def _add(self, counts: Sequence[dict[str, Any]]) -> None:
        row = JobTransitionRow
        statement = insert_for(self._session, row).values(list(counts))
        self._session.execute(
            statement.on_conflict_do_update(
                index_elements=["previous", "state", "queue", "up_to_seconds"],
                set_={
                    "count": row.count + statement.excluded["count"],
                    "seconds": row.seconds + statement.excluded.seconds,
                    "newest": statement.excluded.newest,
                },
            )
        )

    def standing(self) -> dict[tuple[str, JobState], int]:
        """Return the number of jobs by queue and state."""
        statement = select(JobRow.queue, JobRow.state, func.count()).group_by(JobRow.queue, JobRow.state)
        return {(queue, JobState(state)): count for queue, state, count in self._session.execute(statement)}


def _newest_folded() -> ColumnElement[int]:
    return select(func.coalesce(func.max(JobTransitionRow.newest), 0)).scalar_subquery()


def _counted(condition: ColumnElement[bool]) -> Select[Any]:
    """Count the state changes among the events that meet `condition`; columns as in `job_transitions`."""
    changes = _changes(condition).subquery()
    seconds = case((changes.c.seconds < 0, 0.0), else_=changes.c.seconds)  # the clock was set back
    timed = select(
        changes.c.previous, changes.c.state, changes.c.queue, changes.c.id, seconds.label("seconds")
    ).subquery()
    edges: list[tuple[ColumnElement[bool], ColumnElement[float]]] = [
        (timed.c.seconds <= edge, literal(edge, Double())) for edge in BUCKET_SECONDS[:-1]
    ]
    placed = select(timed, case(*edges, else_=literal(math.inf, Double())).label("up_to_seconds")).subquery()
    key = (placed.c.previous, placed.c.state, placed.c.queue, placed.c.up_to_seconds)
    return select(
        *key,
        func.count().label("count"),
        func.sum(placed.c.seconds).label("seconds"),
        func.max(placed.c.id).label("newest"),
    ).group_by(*key)


def _changes(condition: ColumnElement[bool]) -> Select[Any]:
    """Select each state change: previous and new state, queue, and seconds without any scheduled delay."""
    event, before, earlier = JobEventRow, aliased(JobEventRow), aliased(JobEventRow)
    last = select(func.max(earlier.id)).where(earlier.job == event.job, earlier.id < event.id, earlier.kind == "state")
    delay = func.coalesce(before.numbers["delay_seconds"].as_float(), 0.0)
    lost = and_(
        before.message == JobState.RUNNING,
        or_(
            event.message == JobState.RUNNING,
            # A worker that ends a job properly records an error, and so does a person who cancels a queued one.
            and_(event.message.in_([JobState.DEAD, JobState.CANCELLED]), event.numbers["error"].as_string().is_(None)),
        ),
    )
    return (
        select(
            case(
                (before.id.is_(None), literal(NEW, String())), (lost, literal(LOST, String())), else_=before.message
            ).label("previous"),
            event.message.label("state"),
            JobRow.queue.label("queue"),
            event.id.label("id"),
            func.coalesce(event.at - before.at - delay, 0.0).label("seconds"),
        )
        .join(JobRow, JobRow.id == event.job)
        .outerjoin(before, before.id == last.correlate(event).scalar_subquery())
        .where(event.kind == "state", condition)
    )
