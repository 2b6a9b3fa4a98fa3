"""However many jobs have ended, what workers ask all the time is answered by an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.orm import Session
from support.registry_samples import register_sample_base, sample_spec, sample_task, sample_version

from onboard.domain.access import ALL_SCOPES
from onboard.domain.job import JobState
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.domain.names import Reference
from onboard.domain.task_search import TaskSearch
from onboard.registry.aliases import AliasRepository
from onboard.registry.audit import entries
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.outbox import OutboxRepository
from onboard.registry.retention import RetentionRepository
from onboard.registry.search import SearchRepository
from onboard.registry.sessions import SessionRepository
from onboard.registry.tokens import TokenRepository
from onboard.registry.versions import VersionRepository

ENDED, WAITING, MANY_MORE = 8000, 300, 8000
LARGE = (
    "jobs", "job_events", "embedding_versions", "tokens", "sessions", "audit_log", "webhook_events",
    "webhook_deliveries",
)  # fmt: skip
DAY = 86_400.0
COPIES = "WITH RECURSIVE copies(n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM copies WHERE n < {count})"
Statements = list[tuple[str, Any]]

ASKED: dict[str, Callable[[Session, str], object]] = {
    "claim": lambda session, job: ClaimRepository(session).claim("w", ["default"]),
    "claim from several queues": lambda session, job: ClaimRepository(session).claim("w", ["gpu", "default"]),
    "heartbeat": lambda session, job: ClaimRepository(session).heartbeat(job, 1),
    "event": lambda session, job: ClaimRepository(session).append(job, 1, "note", "step"),
    "finish": lambda session, job: ClaimRepository(session).finish(job, 1, JobState.FAILED),
    "expire": lambda session, job: ClaimRepository(session).expire("busy", 1),
    "end abandoned": lambda session, job: ClaimRepository(session).end_abandoned(),
    "overdue": lambda session, job: ClaimRepository(session).overdue("busy"),
    "overdue of all": lambda session, job: ClaimRepository(session).overdue(),
    "running": lambda session, job: ClaimRepository(session).running("busy"),
    "holding": lambda session, job: ClaimRepository(session).holding("busy"),
    "runnable": lambda session, job: ClaimRepository(session).runnable(),
    "too new": lambda session, job: ClaimRepository(session).too_new(["default"]),
    "open": lambda session, job: ClaimRepository(session).open(["default", "gpu"]),
    "job": lambda session, job: JobRepository(session).get(job),
    "key": lambda session, job: JobRepository(session).add(sample_spec(), key="known"),
    **{
        f"jobs by {order}": lambda session, job, order=order: JobRepository(session).briefs(
            JobSearch(), order, JobRepository(session).edge(job, order), 50
        )
        for order in JobOrder
    },
    "events": lambda session, job: EventRepository(session).list(job),
    "versions": lambda session, job: VersionRepository(session).list(task="blue"),
    "newest versions": lambda session, job: VersionRepository(session).newest("red", 50, 900),
    "version": lambda session, job: VersionRepository(session).resolve("red@v7"),
    "version of a job": lambda session, job: VersionRepository(session).of_job(job),
    "next number": lambda session, job: VersionRepository(session).next_number("red"),
    "current of an alias": lambda session, job: SearchRepository(session).current(Reference("red", "latest")),
    "current of a number": lambda session, job: SearchRepository(session).current(Reference("red", None, 7)),
    "all that an alias names": lambda session, job: SearchRepository(session).named("latest"),
    "tasks with their latest version": lambda session, job: SearchRepository(session).tasks(TaskSearch(label="a"), 5),
    "versions by number": lambda session, job: VersionRepository(session).published([("red", 7), ("blue", 1)]),
    "history of an alias": lambda session, job: AliasRepository(session).history("red", "latest", 5),
    "token": lambda session, job: TokenRepository(session).find("t7"),
    "session": lambda session, job: SessionRepository(session).identity("s7", 3600.0),
    "changes": lambda session, job: entries(session, 50, 900),
    "old changes": lambda session, job: RetentionRepository(session).audit_log(DAY),
    "webhooks to send": lambda session, job: OutboxRepository(session).has_work(["a"], 3 * DAY),
    "new webhooks": lambda session, job: OutboxRepository(session).address(["a", "b"], 3 * DAY),
    "due webhooks": lambda session, job: OutboxRepository(session).due("a"),
    "webhooks in vain": lambda session, job: OutboxRepository(session).give_up(3 * DAY),
    "standing of webhooks": lambda session, job: OutboxRepository(session).standing(),
}


@pytest.fixture
def running(database: Database) -> str:
    """A running job's id, in a registry with thousands of jobs and versions."""
    register_sample_base(database)
    with database.write() as session:
        jobs = JobRepository(session)
        jobs.add(sample_spec(), key="known")
        first = ClaimRepository(session).claim("busy", ["default"], pid=1)
        assert first is not None
        ended = jobs.add(sample_spec())[0].id
        multiply(session, "jobs", f"id = '{ended}'", ENDED, number="10 + n", id="'e' || n", key=None, state="'failed'")
        multiply(session, "jobs", f"id = '{ended}'", WAITING, number="90000 + n", id="'w' || n", key=None)
        multiply(session, "job_events", "id = 1", ENDED, id="90000 + n", job="'e' || n")
        for task in ("red", "blue"):
            VersionRepository(session).add(sample_version(task), sample_task(task))
        multiply(session, "embedding_versions", "task = 'red'", ENDED, version="n")
        _open_the_door(session)
        if not database.is_sqlite:
            session.execute(text("SELECT setval(pg_get_serial_sequence('jobs', 'number'), 99999)"))
    analyze(database)
    return first.id


def _open_the_door(session: Session) -> None:
    """Tokens, sessions, changes, and webhooks that arrived, of which a few wait or were given up."""
    token = TokenRepository(session).add("t", "reader", "t1", ALL_SCOPES, created_by="me")
    SessionRepository(session).open("s1", token.id, DAY)
    multiply(session, "tokens", "id = 't'", ENDED, id="'t' || n", hash="'t' || n")
    multiply(session, "sessions", "hash = 's1'", ENDED, hash="'s' || n")
    multiply(session, "audit_log", "action = 'session.open'", ENDED, id="90000 + n")
    session.execute(text("DELETE FROM webhook_events"))
    outbox = OutboxRepository(session)
    outbox.add("alias.moved", {})
    outbox.address(["a"], DAY)
    (delivery,) = outbox.due("a")
    outbox.delivered(delivery)
    multiply(session, "webhook_events", f"id = '{delivery.id}'", ENDED, id="'e' || n")
    multiply(session, "webhook_deliveries", f"event = '{delivery.id}'", ENDED, event="'e' || n")
    for number in range(3):
        outbox.add("alias.moved", {})
        outbox.address(["a"], DAY)
        (delivery,) = outbox.due("a")
        outbox.failed(delivery, "away", 3600.0 if number else None)
    outbox.add("alias.moved", {})


def analyze(database: Database) -> None:
    """What PostgreSQL does by itself in time; nobody tells SQLite how its tables have grown."""
    if not database.is_sqlite:
        with database.write() as session:
            session.execute(text("ANALYZE"))


def multiply(session: Session, table: str, which: str, count: int, **changed: str | None) -> None:
    """More rows like the one that `which` names, but for some columns."""
    columns = list(session.execute(text(f"SELECT * FROM {table} LIMIT 0")).keys())
    values = ", ".join((changed[name] or "NULL") if name in changed else f"{table}.{name}" for name in columns)
    select = f"{COPIES.format(count=count)} SELECT {values} FROM copies, {table} WHERE {which}"
    session.execute(text(f"INSERT INTO {table} ({', '.join(columns)}) {select}"))


@contextmanager
def noted(database: Database) -> Iterator[Statements]:
    """What is asked of the large tables meanwhile."""
    asked: Statements = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_more: Any) -> None:
        asked.append((statement, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    yield asked
    event.remove(database.engine, "before_cursor_execute", note)


def plans(database: Database, what: str, job: str) -> list[str]:
    """The steps by which the database does it; nothing of it remains."""
    with database.write() as session:
        with noted(database) as asked:
            ASKED[what](session, job)
        explain = "EXPLAIN QUERY PLAN " if database.is_sqlite else "EXPLAIN "
        steps = [
            str(row[-1]).strip()
            for statement, parameters in asked
            if not statement.startswith(("INSERT INTO job_events", "INSERT INTO webhook_deliveries"))
            for row in session.connection().exec_driver_sql(explain + statement, parameters)
        ]
        session.rollback()
    return steps


def reads_whole(step: str) -> bool:
    words = step.split()
    return any(
        step in (f"SCAN {table}", f"SCAN {table}_1") or ("Seq Scan on" in step and table in words) for table in LARGE
    )


def test_no_large_table_is_read_whole(database: Database, running: str) -> None:
    whole_reads = {what: [step for step in plans(database, what, running) if reads_whole(step)] for what in ASKED}
    assert {what: steps for what, steps in whole_reads.items() if steps} == {}


@pytest.mark.parametrize(("what", "queues"), [("claim", 1), ("claim from several queues", 2)])
def test_a_claim_finds_each_queues_most_urgent_job_without_sorting(
    database: Database, running: str, what: str, queues: int
) -> None:
    with database.write() as session:
        multiply(session, "jobs", "id = 'w7'", MANY_MORE, number="110000 + n", id="'m' || n")
    analyze(database)
    steps = plans(database, what, running)
    assert sum("ix_jobs_open" in step for step in steps) == queues, steps
    sorts = [step for step in steps if "ORDER BY" in step or step.startswith(("Sort Key: jobs", "Incremental Sort"))]
    assert len(sorts) <= 1, steps  # of the few that were found
