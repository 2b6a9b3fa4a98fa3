"""Delete expired rows: jobs that ended long ago, webhooks, sessions and audit entries; never versions.

Of unused hypernetworks the tensors are deleted; the rows remain, so that no number is reused.

Each method deletes a batch and returns the number of rows; zero means that nothing is left. Rows are locked before the
conditions are checked again, so that a job that is retried at that moment keeps its data.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Delete,
    Update,
    and_,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute

from onboard.domain.drift import day_of
from onboard.domain.job import JobState
from onboard.registry.access_tables import AuditRow, SessionRow
from onboard.registry.clock import database_now, read_clock
from onboard.registry.drift import DriftRepository
from onboard.registry.hypernetworks import unneeded
from onboard.registry.repository import Repository
from onboard.registry.snapshots import unnamed_snapshots
from onboard.registry.tables import (
    EmbeddingVersionRow,
    HypernetworkRow,
    JobEventRow,
    JobRow,
    SnapshotRow,
    StageOutputRow,
)
from onboard.registry.transitions import TransitionRepository
from onboard.registry.webhook_tables import WebhookEventRow

BATCH: Final = 200  # rows (jobs include their logs) in one short transaction
_FINISHED: Final = [state for state in JobState if state.finished]


class RetentionRepository(Repository):
    """Deletes expired rows."""

    def jobs(self, older_than_seconds: float) -> int:
        """Delete jobs that ended before the given age and published nothing, with their logs and stage outputs."""
        published = [exists().where(column == JobRow.id) for column in (EmbeddingVersionRow.job, HypernetworkRow.job)]
        due = and_(_ended(older_than_seconds), *(~dataset for dataset in published))
        jobs = self._locked(JobRow.id, due)
        if jobs:
            TransitionRepository(self._session).fold()  # metrics keep counting deleted jobs
        return self._deleted(delete(JobRow).where(JobRow.id.in_(jobs), due))

    def notes(self, older_than_seconds: float) -> int:
        """Delete progress notes of jobs that ended before the given age. State and stage changes are kept."""
        notes = and_(JobEventRow.job == JobRow.id, JobEventRow.kind == "note")
        jobs = self._locked(JobRow.id, and_(_ended(older_than_seconds), exists().where(notes)))
        return self._deleted(delete(JobEventRow).where(JobEventRow.job.in_(jobs), JobEventRow.kind == "note"))

    def stage_outputs(self, succeeded_seconds: float, other_seconds: float | None) -> int:
        """Delete stage outputs of finished jobs.

        Args:
            succeeded_seconds: age for successful jobs, which never need them again.
            other_seconds: age for other jobs; a retry continues from them. None keeps them.
        """
        due = and_(JobRow.state == JobState.SUCCEEDED, JobRow.finished_at <= database_now() - succeeded_seconds)
        if other_seconds is not None:
            due = or_(due, and_(JobRow.state != JobState.SUCCEEDED, _ended(other_seconds)))
        jobs = self._locked(JobRow.id, and_(due, exists().where(StageOutputRow.job == JobRow.id)))
        return self._deleted(delete(StageOutputRow).where(StageOutputRow.job.in_(jobs)))

    def snapshots(self) -> int:
        """Delete datasets that no version or job refers to."""
        due = unnamed_snapshots()
        digests = self._locked(SnapshotRow.digest, due)
        return self._deleted(delete(SnapshotRow).where(SnapshotRow.digest.in_(digests), due))

    def hypernetworks(self, older_than_seconds: float) -> int:
        """Mark unused hypernetwork versions as collected and release their artifacts."""
        key, due = (HypernetworkRow.base_digest, HypernetworkRow.version), unneeded(older_than_seconds)
        statement = select(*key).where(due).limit(BATCH).with_for_update(skip_locked=True)
        locked = [tuple(row) for row in self._session.execute(statement)]
        collected = update(HypernetworkRow).where(tuple_(*key).in_(locked), due)
        return self._deleted(collected.values(artifact=None, collected_at=database_now()))

    def webhook_events(self, older_than_seconds: float) -> int:
        """Delete webhook events of the given age, with their deliveries."""
        due = WebhookEventRow.at <= database_now() - older_than_seconds
        return self._deleted(
            delete(WebhookEventRow).where(WebhookEventRow.id.in_(self._locked(WebhookEventRow.id, due)))
        )

    def drift_days(self, older_than_days: int) -> int:
        """Delete drift statistics of days older than this."""
        today = day_of(read_clock(self._session))
        return DriftRepository(self._session).remove_before(today - older_than_days, BATCH)

    def sessions(self) -> int:
        """Delete expired browser sessions."""
        return self._deleted(delete(SessionRow).where(SessionRow.expires_at <= database_now()))

    def audit_log(self, older_than_seconds: float) -> int:
        """Delete audit entries of the given age. Only the oldest are checked, because there is no index by time."""
        first = select(func.min(AuditRow.id)).scalar_subquery()
        due = and_(AuditRow.id < first + BATCH, AuditRow.at <= database_now() - older_than_seconds)
        return self._deleted(delete(AuditRow).where(due))

    def _locked(self, key: InstrumentedAttribute[str], due: ColumnElement[bool]) -> Sequence[str]:
        statement = select(key).where(due).limit(BATCH).with_for_update(skip_locked=True)
        return self._session.scalars(statement).all()

    def _deleted(self, statement: Delete | Update) -> int:
        result = self._session.execute(statement)
        assert isinstance(result, CursorResult)
        return result.rowcount


def _ended(older_than_seconds: float) -> ColumnElement[bool]:
    return and_(JobRow.state.in_(_FINISHED), JobRow.finished_at <= database_now() - older_than_seconds)
