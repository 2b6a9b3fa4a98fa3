"""The registry without its fence: nobody asks whether an attempt still owns its job, at no heartbeat and no commit.

For `bench.chaos.unfenced_pipeline` alone, which makes the mutant of it. There is no switch in the product.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select, update

from onboard.domain.job import Job
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import to_job
from onboard.registry.tables import JobRow


def owned(self: ClaimRepository, job_id: str, _attempt: int, /, **values: Any) -> Job:
    """`ClaimRepository._owned` as it would be."""
    values = {**values, "attempt": JobRow.attempt}  # a late one does not turn back the number of the next either
    rows = self._session.scalars(update(JobRow).where(JobRow.id == job_id).values(**values).returning(JobRow))
    return to_job(rows.one())


def cancel_requested(self: ClaimRepository, job_id: str, _attempt: int) -> bool:
    """`ClaimRepository.cancel_requested` as it would be."""
    return bool(self._session.scalars(select(JobRow.cancel_requested).where(JobRow.id == job_id)).one())
