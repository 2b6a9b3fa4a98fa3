"""The order in which jobs of one priority are claimed: owners alternate, so that many jobs of one owner do not delay
others.

Start-time fair queueing (Goyal, Vin and Cheng 1996) with jobs of equal length. A job gets its turn when it is queued:
one after the owner's last waiting job, but not before the first waiting job of any owner. So an owner without waiting
jobs is next, and two owners with many jobs alternate. The jobs of a single owner keep their order.
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
    """Return the turn of a job that is queued now, as an expression for its INSERT.

    Args:
        queue, priority: of the job. Turns are only compared between jobs with the same values.
        owner: who submitted it; jobs without an owner count as jobs of one owner.
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
