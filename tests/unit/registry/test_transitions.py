"""What happened to jobs, counted for good, on SQLite and on PostgreSQL."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from sqlalchemy import delete, event, func, select, update
from support.registry_samples import add_job, claim_job

from onboard.domain.job import Job, JobState
from onboard.domain.transition import BUCKET_SECONDS, Transition
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import database_now
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import JobEventRow, JobRow, JobTransitionRow
from onboard.registry.transitions import TransitionRepository
from onboard.testing import MemoryDoorbell
from workers.reconciler import reconcile


def finish(database: Database, job: Job, state: JobState = JobState.FAILED) -> None:
    with database.write() as session:
        ClaimRepository(session).finish(job.id, job.attempt, state, error={"message": "no"})


def seen(database: Database) -> Sequence[Transition]:
    with database.read() as session:
        return TransitionRepository(session).list()


def counts(database: Database) -> dict[str, int]:
    total: Counter[str] = Counter()
    for transition in seen(database):
        total[f"{transition.previous} → {transition.state}"] += transition.count
    return dict(total)


def fold(database: Database, settled_seconds: float = 0.0) -> None:
    with database.write() as session:
        TransitionRepository(session).fold(settled_seconds)


def date(database: Database, *moments: float) -> None:
    """Let the events have happened then, in epoch seconds."""
    with database.write() as session:
        ids = session.scalars(select(JobEventRow.id).order_by(JobEventRow.id)).all()
        for event_id, at in zip(ids, moments, strict=True):
            session.execute(update(JobEventRow).where(JobEventRow.id == event_id).values(at=at))


def kinds_of_ends(database: Database) -> None:
    """Jobs that ended in every way."""
    for _ in range(3):
        add_job(database)
    finish(database, claim_job(database))
    claim_job(database, lease_seconds=-1), claim_job(database, lease_seconds=-1), claim_job(database, lease_seconds=-1)
    finish(database, again := claim_job(database), JobState.CANCELLED)
    with database.write() as session:
        ClaimRepository(session).end_abandoned()
        JobRepository(session).retry(again.id)
        JobRepository(session).cancel(again.id)


ENDS = {
    "new → queued": 3,
    "queued → running": 3,
    "running → failed": 1,
    "lost → running": 2,
    "lost → dead": 1,
    "running → cancelled": 1,
    "cancelled → queued": 1,
    "queued → cancelled": 1,
}


def test_every_change_of_state_is_counted_and_a_lost_lease_is_told_apart(database: Database) -> None:
    kinds_of_ends(database)
    assert counts(database) == ENDS


def test_a_cancelled_job_whose_worker_is_lost_counts_as_a_lost_lease(database: Database) -> None:
    add_job(database)
    job = claim_job(database, lease_seconds=-1)
    with database.write() as session:
        JobRepository(session).cancel(job.id)
        ClaimRepository(session).end_abandoned()
    assert counts(database)["lost → cancelled"] == 1


def test_dead_after_an_error_is_no_lost_lease(database: Database) -> None:
    add_job(database)
    for _ in range(3):
        job = claim_job(database)
        with database.write() as session:
            ClaimRepository(session).retry_later(job.id, job.attempt, {"message": "away"}, delay_seconds=0.0)
    assert counts(database) == {
        "new → queued": 1, "queued → running": 3, "running → queued": 2, "running → dead": 1,
    }  # fmt: skip


def test_what_is_folded_is_counted_once(database: Database) -> None:
    kinds_of_ends(database)
    before = sorted(map(str, seen(database)))
    fold(database)
    assert sorted(map(str, seen(database))) == before
    fold(database)
    assert sorted(map(str, seen(database))) == before
    add_job(database)
    assert counts(database) == {**ENDS, "new → queued": 4}
    fold(database)
    assert counts(database) == {**ENDS, "new → queued": 4}


def test_figures_stay_when_jobs_are_deleted(database: Database) -> None:
    kinds_of_ends(database)
    fold(database)
    with database.write() as session:
        session.execute(delete(JobRow))
    assert counts(database) == ENDS
    add_job(database)  # takes no id of an event that was counted
    assert counts(database) == {**ENDS, "new → queued": 4}
    fold(database)
    assert counts(database) == {**ENDS, "new → queued": 4}


def test_events_are_folded_when_they_have_settled(database: Database) -> None:
    add_job(database), add_job(database)
    date(database, time.time() - 7200, time.time())
    fold(database, settled_seconds=3600)
    with database.read() as session:
        assert session.scalars(select(func.sum(JobTransitionRow.count))).one() == 1
    assert counts(database) == {"new → queued": 2}


def test_durations_are_put_into_buckets_and_summed_by_queue(database: Database) -> None:
    (
        add_job(database, queue="a"),
        add_job(database, queue="a"),
        add_job(database, queue="b"),
        claim_job(database, queue="a"),
        claim_job(database, queue="a"),
    )
    date(database, 0, 0, 0, 30, 30.5)
    for _ in range(2):  # the same from the events and from what is folded
        waits = sorted((wait for wait in seen(database) if wait.state is JobState.RUNNING), key=lambda e: e.seconds)
        assert [(wait.queue, wait.up_to_seconds, wait.count, wait.seconds) for wait in waits] == [
            ("a", 30.0, 1, 30.0), ("a", 60.0, 1, 30.5),
        ]  # fmt: skip
        fold(database)


def test_the_last_bucket_has_no_end(database: Database) -> None:
    add_job(database), claim_job(database)
    date(database, 0, 2 * BUCKET_SECONDS[-2])
    fold(database)
    (wait,) = [transition for transition in seen(database) if transition.state is JobState.RUNNING]
    assert wait.up_to_seconds == BUCKET_SECONDS[-1] == float("inf")


def test_the_pause_before_a_new_attempt_is_no_waiting(database: Database) -> None:
    add_job(database)
    job = claim_job(database)
    with database.write() as session:
        ClaimRepository(session).retry_later(job.id, 1, {"message": "away"}, delay_seconds=20.0)
        session.execute(update(JobRow).values(not_before_at=database_now()))
    claim_job(database)
    date(database, 0, 1, 2, 25)
    assert sum(transition.seconds for transition in seen(database) if transition.state is JobState.RUNNING) == 1 + 3


def test_a_clock_that_was_set_back_takes_nothing_away(database: Database) -> None:
    add_job(database), claim_job(database)
    date(database, 100, 50)
    assert [transition.seconds for transition in seen(database)] == [0.0, 0.0]


def test_the_reconciler_folds_what_has_settled(database: Database) -> None:
    add_job(database), add_job(database)
    date(database, time.time() - 7200, time.time())
    reconcile(database, MemoryDoorbell(), "w1", lease_seconds=60)
    with database.read() as session:
        assert session.scalars(select(func.sum(JobTransitionRow.count))).one() == 1


def test_jobs_are_counted_by_queue_and_state(database: Database) -> None:
    kinds_of_ends(database)
    add_job(database, queue="other")
    with database.read() as session:
        assert TransitionRepository(session).standing() == {
            ("default", JobState.FAILED): 1,
            ("default", JobState.DEAD): 1,
            ("default", JobState.CANCELLED): 1,
            ("other", JobState.QUEUED): 1,
        }


def test_a_scrape_looks_at_new_events_and_an_index_of_jobs_only(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    statements: list[tuple[str, tuple[object, ...]]] = []
    with database.read() as session:
        connection = session.connection()
        event.listen(connection, "before_cursor_execute", lambda *args: statements.append((args[2], args[3])))
        TransitionRepository(session).list()
        TransitionRepository(session).standing()
        list_plan, standing_plan = (
            [str(row[-1]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", values)]
            for sql, values in statements[:2]
        )
    assert "SEARCH job_events USING INTEGER PRIMARY KEY (rowid>?)" in list_plan
    assert not [step for step in list_plan if step.startswith(("SCAN job_events", "SCAN jobs"))]
    assert standing_plan == ["SCAN jobs USING COVERING INDEX ix_jobs_queue_state"]
    database.dispose()
