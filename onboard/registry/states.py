"""Conditions of jobs that claims share; those on their state are in the words that the indexes were made with."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, exists, literal_column, or_, select

from onboard.domain.worker import WorkerState
from onboard.registry.tables import JobRow, QueueRow, WorkerRow

# Written out, not bound: SQLite takes a partial index only for the very words that it was made with.
IS_OPEN: Final = JobRow.state.in_([literal_column("'queued'"), literal_column("'running'")])
IS_RUNNING: Final = JobRow.state == literal_column("'running'")


def not_paused() -> ColumnElement[bool]:
    """Its queue goes on."""
    return JobRow.queue.not_in(select(QueueRow.name).where(QueueRow.paused))


def understood(release: int) -> ColumnElement[bool]:
    """Submitted by a program that is not newer than `release`."""
    return or_(JobRow.needs_release.is_(None), JobRow.needs_release <= release)


def not_passed_by(worker: str) -> ColumnElement[bool]:
    """The worker has not found before that it cannot run it."""
    return or_(JobRow.passed_by.is_(None), JobRow.passed_by.not_like(f"%\n{_literal(worker)}\n%", escape="\\"))


def _literal(name: str) -> str:
    """The name as a pattern that means nothing but itself."""
    return name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def stays(worker: str) -> ColumnElement[bool]:
    """The worker neither drains nor has stopped, so that it may claim."""
    leaving = [WorkerState.DRAINING, WorkerState.STOPPED]
    return ~exists().where(WorkerRow.name == worker, WorkerRow.state.in_(leaving))
