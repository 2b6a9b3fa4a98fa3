"""Jobs that workers could not run, because their machine is broken or lacks something, and passed on to others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from onboard.domain.release import release_number
from onboard.registry.claims import is_runnable
from onboard.registry.repository import Repository
from onboard.registry.states import not_passed_by, understood
from onboard.registry.tables import JobRow


@dataclass(frozen=True, slots=True)
class PassedJob:
    """A waiting job that some workers could not run.

    Args:
        passed_by: names of these workers.
    """

    id: str
    queue: str
    passed_by: frozenset[str]


class PassedRepository(Repository):
    """Jobs that workers passed on."""

    def passed_by(self, job_id: str) -> frozenset[str]:
        """Return the names of the workers that could not run a job."""
        names = self._session.scalars(select(JobRow.passed_by).where(JobRow.id == job_id)).one_or_none()
        return _names(names)

    def passed(self, worker: str, queues: Sequence[str]) -> Sequence[PassedJob]:
        """Return runnable jobs of `queues` that `worker` has passed on, in order of submission."""
        if not queues:
            return []
        statement = (
            select(JobRow.id, JobRow.queue, JobRow.passed_by)
            .where(JobRow.passed_by.is_not(None), ~not_passed_by(worker), JobRow.queue.in_(list(queues)))
            .where(is_runnable(), understood(release_number()))
            .order_by(JobRow.number)
        )
        return [PassedJob(job, queue, _names(names)) for job, queue, names in self._session.execute(statement)]


def _names(passed_by: str | None) -> frozenset[str]:
    return frozenset(filter(None, (passed_by or "").split("\n")))
