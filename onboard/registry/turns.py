"""In which order jobs of one priority are claimed: owners take turns, so that many jobs of one delay nobody else.

Start-time fair queueing (Goyal, Vin and Cheng 1996), with jobs of one length: a job gets its turn when it is queued.
It is one after the owner's last waiting job, but not before the first waiting job of anybody. An owner without waiting
jobs therefore is next, and two owners with many jobs alternate. The jobs of a single owner keep their order.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import ColumnElement, case, func, select

from onboard.domain.job import JobState
from onboard.registry.states import IS_OPEN
from onboard.registry.tables import JobRow

CLAIM_ORDER: Final = (JobRow.priority.desc(), JobRow.turn, JobRow.number)

_IS_QUEUED: Final = JobRow.state == JobState.QUEUED


def next_turn(queue: str, priority: int, owner: str | None) -> ColumnElement[int]:
    """The turn of a job that is queued now, as an expression for its INSERT.

    Args:
        queue, priority: of the job. Turns are compared only between jobs that have the same.
        owner: who submitted it; jobs without an owner count as those of one owner.
    """
    waiting = select(JobRow.turn).where(IS_OPEN, _IS_QUEUED, JobRow.queue == queue, JobRow.priority == priority)
    first = waiting.order_by(JobRow.turn).limit(1).scalar_subquery()
    newest = select(func.max(JobRow.number)).scalar_subquery()  # no turn is larger
    earliest = func.coalesce(first, newest + 1, 1)
    last_of_owner = (
        select(func.max(JobRow.turn))
        .where(_IS_QUEUED, JobRow.queue == queue, JobRow.priority == priority, JobRow.owner.is_not_distinct_from(owner))
        .scalar_subquery()
    )
    after_own = func.coalesce(last_of_owner + 1, 0)
    return case((after_own > earliest, after_own), else_=earliest)
