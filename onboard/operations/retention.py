"""Use case: delete the rows that the retention settings no longer keep. The bytes that they named go with `onboard gc`.

Workers do it by themselves, a batch at a time; garbage collection does it to the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from onboard.registry.database import Database
from onboard.registry.retention import RetentionRepository
from onboard.settings import Settings

WEBHOOK_DAYS: Final = 7  # how long events of webhooks can be seen, told or not
OLD_HOURS: Final = 24.0  # how long what a job that succeeded has left is kept, for whoever wonders about it
_HOUR_SECONDS: Final = 3600.0
_DAY_SECONDS: Final = 86_400.0

Step = Callable[[RetentionRepository], int]


def steps(settings: Settings, succeeded_hours: float = OLD_HOURS) -> dict[str, Step]:
    """What to delete, by table, in this order; each step deletes a batch and says how many rows went.

    Args:
        succeeded_hours: how long stage outputs of jobs that succeeded stay.
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
    """Delete one batch of each table, in short transactions.

    Returns:
        How many rows went, by table, but for tables of which none went; empty when nothing is left to delete.
    """
    gone = {}
    for table, step in steps(settings).items():
        with database.write() as session:
            gone[table] = step(RetentionRepository(session))
    return {table: count for table, count in gone.items() if count}
