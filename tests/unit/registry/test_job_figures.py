"""Figures over jobs, on SQLite and on PostgreSQL: hand-made pasts, and the indexes that answer for them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event
from sqlalchemy.orm import Session
from support import watched_jobs as past

from onboard.contract.operations import RecentFigures
from onboard.domain.figures import Ended
from onboard.domain.job import JobState, Stage
from onboard.jobs.status import Lately
from onboard.registry.claims import ClaimRepository
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.job_figures import JobFigures
from onboard.registry.jobs import JobRepository
from onboard.registry.workers import QueueRepository, WorkerRepository


def of_ended(database: Database, **bounds: Any) -> tuple[dict[str, Ended], float]:
    with database.read() as session:
        return JobFigures(session).ended(read_clock(session), **bounds)


def test_what_ended_in_the_window_tells_how_long_it_waited_and_ran(database: Database) -> None:
    past.ended(database, ago=5, wait=2, run=10)
    past.ended(database, ago=3300, wait=4, run=30, attempts=3)
    past.ended(database, ago=3900, wait=6, run=20, state=JobState.DEAD, attempts=3)
    past.ended(database, ago=100, wait=7, run=9, queue="gpu")
    past.ended(database, ago=9000)
    past.ended(database, ago=10, run=None, state=JobState.CANCELLED)  # nobody ever worked on it
    past.running(database, "w1")
    ended, window_seconds = of_ended(database, window_seconds=7200.0)
    assert (window_seconds, sorted(ended)) == (7200.0, ["default", "gpu"])
    assert RecentFigures.of_ended(ended["default"]).model_dump() == {
        "window_seconds": 7200.0, "ended": 3, "ended_per_hour": 2.0, "retries": 4,
        "succeeded": 2, "failed": 0, "cancelled": 0, "dead": 1,
        "wait_p50_seconds": 4.0, "wait_p95_seconds": 5.8, "run_p50_seconds": 20.0, "run_p95_seconds": 29.0,
    }  # fmt: skip
    gpu = ended["gpu"]
    assert (gpu.wait.p50, gpu.wait.p95) == pytest.approx((7, 7), abs=0.01)
    assert (gpu.run.p50, gpu.run.p95) == pytest.approx((9, 9), abs=0.01)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 20, 21])
def test_percentiles_lie_between_neighbours_in_proportion(database: Database, count: int) -> None:
    runs = [float(number**2 + 1) for number in range(count)]
    for run in random.Random(0).sample(runs, count):
        past.ended(database, ago=10, run=run)
    run = of_ended(database)[0]["default"].run
    assert (run.p50, run.p95) == pytest.approx(tuple(np.quantile(runs, (0.5, 0.95))), abs=0.01)


def test_a_window_with_too_many_jobs_is_cut_where_they_end(database: Database) -> None:
    for ago in (10, 20, 30, 40):
        past.ended(database, ago=ago)
    ended, window_seconds = of_ended(database, window_seconds=3600.0, most=3)
    assert ended["default"].total == 3
    assert window_seconds == pytest.approx(30, abs=1)
    assert of_ended(database, window_seconds=3600.0, most=4)[0]["default"].total == 4


def test_what_ended_is_counted_anew_once_another_job_ended(database: Database) -> None:
    lately = Lately()

    def total() -> int:
        with database.read() as session:
            return sum(ended.total for ended in lately.read(session, read_clock(session))[0].values())

    assert total() == 0
    past.ended(database, ago=100)
    assert total() == 1
    past.ended(database, ago=200)  # as if a retry had taken one away: not seen at once
    assert total() == 1
    past.ended(database, ago=50)
    assert total() == 3


def finish(database: Database, state: JobState = JobState.FAILED) -> None:
    with database.write() as session:
        claims = ClaimRepository(session)
        job = claims.claim("w1", ["default"])
        assert job is not None
        claims.finish(job.id, job.attempt, state)


def test_a_job_that_was_retried_by_hand_waits_and_runs_anew(database: Database) -> None:
    job = past.queued(database, ago=9000)
    finish(database)
    with database.write() as session:
        again = JobRepository(session).retry(job.id)
    assert again.started_at is None
    finish(database)
    ended = of_ended(database)[0]["default"]
    assert 0 <= (ended.wait.p50 or -1) < 60
    assert 0 <= (ended.run.p50 or -1) < 60


def test_a_retry_after_an_error_leaves_the_first_wait_as_it_was(database: Database) -> None:
    past.queued(database, ago=500)
    with database.write() as session:
        claims = ClaimRepository(session)
        job = claims.claim("w1", ["default"])
        assert job is not None
        claims.retry_later(job.id, job.attempt, {}, delay_seconds=0.0)
    finish(database)
    ended = of_ended(database)[0]["default"]
    assert ended.wait.p50 == pytest.approx(500, abs=30)
    assert ended.retries == 1


def test_queues_tell_depth_and_age_by_state(database: Database) -> None:
    past.queued(database, ago=30)
    past.queued(database, ago=90)
    later = past.queued(database, ago=700)
    with database.write() as session:
        claims = ClaimRepository(session)
        claimed = claims.claim("w9", ["default"])  # the oldest by number is the first that was added
        assert claimed is not None
        claims.retry_later(claimed.id, claimed.attempt, {}, delay_seconds=600)
    past.running(database, "w1", ago=40)
    past.running(database, "w2", ago=20)
    with database.read() as session:
        (queue,) = QueueRepository(session).list()
    assert (queue.queued, queue.delayed, queue.running) == (3, 1, 2)
    assert queue.oldest_queued_seconds == pytest.approx(700, abs=30)
    assert queue.oldest_running_seconds == pytest.approx(40, abs=30)
    assert later.state is JobState.QUEUED


def test_a_queue_with_nothing_but_later_jobs_has_no_oldest(database: Database) -> None:
    past.queued(database, ago=-60)
    with database.read() as session:
        (queue,) = QueueRepository(session).list()
    assert (queue.queued, queue.delayed, queue.oldest_queued_seconds) == (1, 1, None)


def test_ahead_are_the_more_urgent_and_the_older_of_the_same_queue_that_are_due(database: Database) -> None:
    older, urgent = past.queued(database), past.queued(database, priority=5)
    past.queued(database, ago=-3600)  # due in an hour
    past.queued(database, queue="gpu")
    mine = past.queued(database)
    past.queued(database)  # younger
    past.running(database, "w1")
    with database.read() as session:
        figures, now = JobFigures(session), read_clock(session)
        assert figures.ahead(mine, now) == 2
        assert figures.ahead(older, now) == 1
        assert figures.ahead(urgent, now) == 0
        assert [job.id for job in figures.queued(3)][:2] == [urgent.id, older.id]


def test_a_job_that_waits_for_its_retry_stands_behind_what_is_due_by_then(database: Database) -> None:
    past.queued(database, ago=-10)
    past.queued(database, ago=-1000)
    mine = past.queued(database, ago=-100)
    with database.read() as session:
        assert JobFigures(session).ahead(mine, read_clock(session)) == 1


def test_a_running_attempt_tells_its_stage_its_last_note_and_its_lease(database: Database) -> None:
    past.running(database, "w1", ago=70, stage=Stage.TRAIN, stage_ago=25, note="train step 20/40", lease_left=42)
    past.running(database, "w2", ago=90)
    with database.read() as session:
        older, newer = JobFigures(session).attempts(read_clock(session))
    assert (older.job.worker, newer.job.worker) == ("w2", "w1")
    assert (older.stage_seconds, older.note) == (None, "")
    assert newer.seconds == pytest.approx(70, abs=20)
    assert newer.stage_seconds == pytest.approx(25, abs=20)
    assert newer.note == "train step 20/40"
    assert newer.lease_seconds == pytest.approx(42, abs=20)


def test_notes_of_an_earlier_attempt_are_not_those_of_this_one(database: Database) -> None:
    job = past.running(database, "w1", stage=Stage.TRAIN, note="train step 10/40", lease_left=-1)
    with database.write() as session:
        again = ClaimRepository(session).claim("w2", ["default"])
        assert again is not None
        assert again.id == job.id
        (attempt,) = JobFigures(session).attempts(read_clock(session))
    assert (attempt.job.attempt, attempt.stage_seconds, attempt.note) == (2, None, "")


def test_timed_jobs_carry_what_their_likeness_and_size_depend_on(database: Database) -> None:
    report = {"rows": {"train": 32, "validation": 0, "test": 8}, "characters": {"mean": 80.0}, "labels": []}
    past.ended(database, ago=10, queue="gpu", options={"dataset_report": report})
    past.ended(database, ago=20, state=JobState.FAILED)
    past.ended(database, ago=30, options={"base_digest": None})
    with database.read() as session:
        first, second = JobFigures(session).timed(read_clock(session))
    assert (first.queue, first.base, first.tuning) == ("gpu", past.BASE_DIGEST, "auto")
    assert first.stage_seconds == past.STAGES
    assert first.report == {"rows": report["rows"], "characters": report["characters"], "validation": None}
    assert (second.base, set(second.report.values())) == (None, {None})


Query = Callable[[Session, float], object]
WAITING = ("ix_jobs_open", "ix_jobs_turn")  # either has all that is waiting
QUERIES: dict[str, tuple[str | tuple[str, ...], Query]] = {
    "ended": ("ix_jobs_ended", lambda session, now: JobFigures(session).ended(now)),
    "timed": ("ix_jobs_ended", lambda session, now: list(JobFigures(session).timed(now))),
    "depth": ("ix_jobs_open", lambda session, now: QueueRepository(session).list()),
    "queued": (WAITING, lambda session, now: JobFigures(session).queued(20)),
    "running": ("ix_jobs_running", lambda session, now: JobFigures(session).attempts(now)),
    "workers": ("ix_jobs_running", lambda session, now: WorkerRepository(session).list()),
    "ahead": (WAITING, lambda session, now: JobFigures(session).ahead(_first(session), now)),
}


def _first(session: Session) -> Any:
    return JobFigures(session).queued(1)[0]


@pytest.mark.parametrize("name", QUERIES)
def test_figures_are_answered_by_an_index_and_never_by_reading_all_jobs(database: Database, name: str) -> None:
    names, query = QUERIES[name]
    indexes = (names,) if isinstance(names, str) else names
    past.queued(database)
    past.running(database, "w1")
    past.ended(database, ago=10)
    if not database.is_sqlite:  # it plans by what it counted, and reads a small table whole, rightly
        past.ended_long_ago(database, count=3000)
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        if "FROM jobs" in statement:
            asked.append((statement, parameters))

    with database.read() as session:
        now = read_clock(session)
        event.listen(database.engine, "before_cursor_execute", note)
        query(session, now)
        event.remove(database.engine, "before_cursor_execute", note)
        explain = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
        plans = [
            "\n".join(str(row[-1]) for row in session.connection().exec_driver_sql(explain + statement, parameters))
            for statement, parameters in asked
        ]
    assert asked
    assert any(index in plan for plan in plans for index in indexes), plans
    assert not any(line.strip() == "SCAN jobs" or "Seq Scan on jobs" in line for p in plans for line in p.splitlines())


def test_the_figures_of_a_queue_come_from_the_index_alone(sqlite_url: str) -> None:
    """SQLite reads a job's whole JSON to come by a column behind it; of those that run now, which are few, it may."""
    database = Database(sqlite_url)
    statements: list[tuple[str, Any]] = []
    event.listen(
        database.engine, "before_cursor_execute", lambda c, cursor, text, values, *m: statements.append((text, values))
    )
    with database.read() as session:
        JobFigures(session).ended(read_clock(session))
        QueueRepository(session).list()
        for text, values in [statement for statement in statements if "FROM jobs" in statement[0]]:
            plan = [row[-1] for row in session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)]
            reads = [step for step in plan if re.match(r"(SEARCH|SCAN) jobs\b", step)]
            assert reads
            assert all("COVERING INDEX" in step or "ix_jobs_running" in step for step in reads), plan
    database.dispose()
