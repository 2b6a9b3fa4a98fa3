"""Take running jobs away from their workers, for a restore and for deleted tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, update
from sqlalchemy.orm import Session

from onboard.domain.job import JobState
from onboard.registry.clock import database_now
from onboard.registry.events import EventRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.tables import JobRow


def take_away(
    session: Session, which: ColumnElement[bool], state: JobState, facts: dict[str, Any], **values: Any
) -> Sequence[Any]:
    """Move running jobs of any worker to another state. `facts` go into their events.

    Returns:
        Id, attempt and queue of each job.
    """
    nobody = {"lease_expires_at": None, "worker": None, "worker_pid": None}
    taken = update(JobRow).where(JobRow.state == JobState.RUNNING, which).values(state=state, **nobody, **values)
    jobs = session.execute(taken.returning(JobRow.id, JobRow.attempt, JobRow.queue)).all()
    for job, attempt, _ in jobs:
        EventRepository(session).append(job, attempt, "state", state, numbers=facts)
        LeaseRepository(session).give_back_all(job)
    return jobs


def queue_again(session: Session, which: ColumnElement[bool], facts: dict[str, Any]) -> Sequence[Any]:
    """Queue running jobs again, due at once. The current attempt does not count. See `take_away`."""
    due = {"not_before_at": database_now(), "max_attempts": JobRow.max_attempts + 1}
    return take_away(session, which, JobState.QUEUED, facts, **due)
