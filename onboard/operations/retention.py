"""Use case: delete rows that the retention settings no longer keep. `onboard gc` deletes their bytes.

Workers delete a batch at a time; garbage collection deletes everything that has expired.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from onboard.registry.database import Database
from onboard.registry.retention import RetentionRepository
from onboard.settings import Settings

WEBHOOK_DAYS: Final = 7  # retention of webhook events, delivered or not
OLD_HOURS: Final = 24.0  # retention of stage outputs of successful jobs, for debugging
_HOUR_SECONDS: Final = 3600.0
_DAY_SECONDS: Final = 86_400.0

Step = Callable[[RetentionRepository], int]


def steps(settings: Settings, succeeded_hours: float = OLD_HOURS) -> dict[str, Step]:
    """Return the deletions by table, in order. Each call deletes one batch and returns the number of rows.

    Args:
        succeeded_hours: retention of stage outputs of successful jobs.
    """
    succeeded_seconds = succeeded_hours * _HOUR_SECONDS
    job_seconds = settings.retention_job_days * _DAY_SECONDS
    event_seconds = settings.retention_event_days * _DAY_SECONDS
    audit_seconds = settings.retention_audit_days * _DAY_SECONDS
    steps: dict[str, Step] = {}
    if job_seconds:
        steps["jobs"] = lambda rows: rows.jobs(job_seconds)
    if event_seconds:
        steps["job_events"] = lambda rows: rows.notes(event_seconds)
    steps["stage_outputs"] = lambda rows: rows.stage_outputs(succeeded_seconds, event_seconds or None)
    steps["webhook_events"] = lambda rows: rows.webhook_events(WEBHOOK_DAYS * _DAY_SECONDS)
    if settings.retention_drift_days:
        steps["drift_days"] = lambda rows: rows.drift_days(settings.retention_drift_days)
    steps["sessions"] = lambda rows: rows.sessions()
    if audit_seconds:
        steps["audit_log"] = lambda rows: rows.audit_log(audit_seconds)
    return steps


def retain(database: Database, settings: Settings) -> dict[str, int]:
    """Delete one batch from each table, in short transactions.

    Returns:
        The number of deleted rows by table, without zeros; empty when nothing is left to delete.
    """
    gone = {}
    for table, step in steps(settings).items():
        with database.write() as session:
            gone[table] = step(RetentionRepository(session))
    return {table: count for table, count in gone.items() if count}
