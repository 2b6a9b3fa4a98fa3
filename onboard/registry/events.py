"""The log of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import func, insert, select

from onboard.domain.job import EVENTS_AT_ONCE, EventKind, JobEvent, Stage
from onboard.registry.clock import database_now
from onboard.registry.repository import Repository, record_of
from onboard.registry.tables import JobEventRow


class EventRepository(Repository):
    """Appends to and reads the log of a job. The caller does the fencing (`ClaimRepository.append`)."""

    def append(
        self,
        job_id: str,
        attempt: int,
        kind: EventKind,
        message: str,
        *,
        stage: Stage | None = None,
        seconds: float | None = None,
        numbers: dict[str, Any] | None = None,
    ) -> None:
        """Append one event with the database's time."""
        self._session.execute(
            insert(JobEventRow).values(
                job=job_id,
                attempt=attempt,
                at=database_now(),
                kind=kind,
                stage=stage.value if stage else None,
                message=message,
                seconds=seconds,
                numbers=numbers or {},
            )
        )

    def list(self, job_id: str, since: int = 0, limit: int = EVENTS_AT_ONCE) -> Sequence[JobEvent]:
        """Return the events of a job with an id above `since`, oldest first."""
        rows = self._session.scalars(
            select(JobEventRow)
            .where(JobEventRow.job == job_id, JobEventRow.id > since)
            .order_by(JobEventRow.id)
            .limit(limit)
        )
        return [_event(row) for row in rows]

    def newest(self) -> int:
        """Return the id of the newest event of all jobs; 0 if there are none."""
        return self._session.scalars(select(func.max(JobEventRow.id))).one() or 0


def _event(row: JobEventRow) -> JobEvent:
    """Return an event. Events of a kind or a stage that only later releases know are notes."""
    stage = Stage.known(row.stage)
    known = row.kind in get_args(EventKind) and (stage is not None or row.stage is None)
    return record_of(JobEvent, row, stage=stage, kind=row.kind if known else "note")
