"""Conditions of jobs that claims share. Those on the state match the conditions of the indexes literally."""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, exists, literal_column, or_, select

from onboard.domain.worker import WorkerState
from onboard.registry.tables import JobRow, QueueRow, WorkerRow

# Literals instead of parameters, because SQLite only uses a partial index if its condition matches literally.
IS_OPEN: Final = JobRow.state.in_([literal_column("'queued'"), literal_column("'running'")])
IS_RUNNING: Final = JobRow.state == literal_column("'running'")


def not_paused() -> ColumnElement[bool]:
    """Condition: the job's queue is not paused."""
    return JobRow.queue.not_in(select(QueueRow.name).where(QueueRow.paused))


def understood(release: int) -> ColumnElement[bool]:
    """Condition: workers of `release` can run it."""
    return or_(JobRow.needs_release.is_(None), JobRow.needs_release <= release)


def not_passed_by(worker: str) -> ColumnElement[bool]:
    """Condition: the worker has not passed on the job."""
    return or_(JobRow.passed_by.is_(None), JobRow.passed_by.not_like(f"%\n{_literal(worker)}\n%", escape="\\"))


def _literal(name: str) -> str:
    """Escape a name for LIKE."""
    return name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def stays(worker: str) -> ColumnElement[bool]:
    """Condition: the worker is neither draining nor stopped, so it may claim."""
    leaving = [WorkerState.DRAINING, WorkerState.STOPPED]
    return ~exists().where(WorkerRow.name == worker, WorkerRow.state.in_(leaving))
