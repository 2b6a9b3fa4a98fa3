"""Whatever is done in whatever order, the registry does what the plain model of tests/support/queue_model.py does.

The database's clock is in the test's hands: on SQLite its function `julianday` is replaced, on PostgreSQL a schema that
is searched first has a `clock_timestamp` of its own. Times are set so that no two of them meet by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import delete, event, text
from support.queue_model import DELAY_SECONDS, QueueModel, Token
from support.queue_model import LEASE_SECONDS as LEASE
from support.registry_samples import register_sample_base, sample_spec, sample_task, sample_version

from onboard.domain.job import Job, JobState
from onboard.domain.worker import WorkerState
from onboard.errors import ConflictError, FencedError
from onboard.registry.claims import ClaimRepository
from onboard.registry.database import Database
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.tables import Table
from onboard.registry.versions import VersionRepository
from onboard.registry.workers import QueueRepository, WorkerRepository

Draw = Callable[[Sequence[Any]], Any]

QUEUES = ("default", "gpu")
CHOICES = (QUEUES, QUEUES, QUEUES, ("default",), ())
WORKERS = ("a", "b")
TASKS = ("red", "blue")
SECONDS = (1, 5, 15, 25)
ACTS = ("heartbeat", "note", "failed", "cancelled", "released", "later", "published", "published")
STEPS = {
    "submit": 3, "claim": 3, "take_over": 3, "act": 6, "wait": 2, "reconcile": 1, "cancel": 1, "retry": 2, "close": 1,
    "open_again": 2,
}  # fmt: skip
FAKE_CLOCK = """
    CREATE SCHEMA fake;
    CREATE TABLE fake.clock (now double precision);
    INSERT INTO fake.clock VALUES (0);
    CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
        AS 'SELECT pg_catalog.to_timestamp(now) FROM fake.clock';
"""


@dataclass
class Registry:
    """A database whose clock says what it is told."""

    database: Database
    set_clock: Callable[[float], None]

    def empty(self) -> None:
        with self.database.write() as session:
            for table in reversed(Table.metadata.sorted_tables):
                session.execute(delete(table))
        register_sample_base(self.database)


def on_sqlite(url: str) -> Registry:
    database, now = Database(url), [0.0]

    def replace_clock(connection: Any, record: Any) -> None:
        connection.create_function("julianday", 1, lambda moment: now[0] / 86400 + 2440587.5)

    event.listen(database.engine, "connect", replace_clock)
    return Registry(database, lambda moment: now.__setitem__(0, moment))


def on_postgresql(url: str) -> Registry:
    plain = Database(url)
    with plain.write() as session:
        session.execute(text(FAKE_CLOCK))

    def set_clock(moment: float) -> None:
        with plain.write() as session:
            session.execute(text("UPDATE fake.clock SET now = :now"), {"now": moment})

    return Registry(Database(f"{url}?options=-csearch_path%3Dfake,public,pg_catalog"), set_clock)


class Queue(RuleBasedStateMachine):
    """Submitters, workers that may be late, operators and the reconciler, one step at a time.

    One rule draws what is done: left to choose among many, hypothesis switches most of them off most of the time.
    """

    registry: Registry

    @initialize()
    def begin(self) -> None:
        self.registry.empty()
        self.model = QueueModel()
        self.registry.set_clock(self.model.now)
        self.tokens: list[Token] = []
        for worker in WORKERS:
            self.write(lambda session, name=worker: enter(session, name))

    @rule(what=st.sampled_from([what for what, weight in STEPS.items() for _ in range(weight)]), data=st.data())
    def step(self, what: str, data: st.DataObject) -> None:
        if self.model.jobs or what == "submit":
            getattr(self, what)(lambda choices: data.draw(st.sampled_from(choices)))

    def write(self, what: Callable[[Any], Any]) -> Any:
        with self.registry.database.write() as session:
            return what(session)

    def submit(self, draw: Draw) -> None:
        task, queue, priority = draw(TASKS), draw(QUEUES), draw((0, 0, 1))
        spec = sample_spec(task)
        job: Job = self.write(lambda session: JobRepository(session).add(spec, queue=queue, priority=priority))[0]
        self.model.add(job.id, task, queue, priority)

    def wait(self, draw: Draw) -> None:
        self.model.now += draw(SECONDS)
        self.registry.set_clock(self.model.now)

    def claim(self, draw: Draw) -> None:
        worker, queues, pid = draw(WORKERS), draw(CHOICES), len(self.tokens)
        expected = self.model.claim(worker, pid, queues)
        job = self.write(lambda session: ClaimRepository(session).claim(worker, queues, pid=pid, lease_seconds=LEASE))
        assert (job and (job.id, job.attempt)) == (expected and (expected.id, expected.attempt))
        if job:
            self.tokens.append((job.id, job.attempt))

    def take_over(self, draw: Draw) -> None:
        """The process of an attempt is said to be dead, though it is not; somebody takes what is most urgent."""
        owned = [job for job in self.model.jobs.values() if self.model.owned((job.id, job.attempt))]
        if not owned:
            return
        lost = draw(owned)
        jobs = self.write(lambda session: ClaimRepository(session).expire(lost.worker, lost.pid))
        assert {job.id for job in jobs} == self.model.expire(lost.worker, lost.pid)
        self.claim(draw)

    def act(self, draw: Draw) -> None:
        """What an attempt does; registry and model both refuse it when the attempt has lost the job."""
        if not self.tokens:
            return
        token, what = draw(self.tokens[-4:]), draw(ACTS)
        task, job = self.model.jobs[token[0]].task, self.model.owned(token)
        if job is None:
            with pytest.raises(FencedError):
                self.write(lambda session: done(session, token, task, what))
        else:
            answer = self.write(lambda session: done(session, token, task, what))
            assert answer == self.model.act(job, what)

    def reconcile(self, draw: Draw) -> None:
        ended = self.write(lambda session: ClaimRepository(session).end_abandoned())
        assert {job.id for job in ended} == self.model.end_abandoned()

    def cancel(self, draw: Draw) -> None:
        job = draw(list(self.model.jobs.values()))
        self.ask(lambda jobs: jobs.cancel(job.id), self.model.cancel(job))

    def retry(self, draw: Draw) -> None:
        job = draw(list(self.model.jobs.values()))
        self.ask(lambda jobs: jobs.retry(job.id), self.model.retry(job))

    def ask(self, what: Callable[[JobRepository], Any], possible: bool) -> None:
        with nullcontext() if possible else pytest.raises(ConflictError):
            self.write(lambda session: what(JobRepository(session)))

    def close(self, draw: Draw) -> None:
        """A queue is paused, and perhaps a worker begins to leave."""
        queue, worker = draw(QUEUES), draw((*WORKERS, None, None))
        self.write(lambda session: QueueRepository(session).set_paused(queue, True))
        self.model.paused.add(queue)
        if worker is not None:
            self.write(lambda session: WorkerRepository(session).begin_to_leave(worker))
            self.model.leaving.add(worker)

    def open_again(self, draw: Draw) -> None:
        for queue in self.model.paused:
            self.write(lambda session, name=queue: QueueRepository(session).set_paused(name, False))
        for worker in self.model.leaving:
            self.write(lambda session, name=worker: enter(session, name))
        self.model.paused.clear()
        self.model.leaving.clear()

    @invariant()
    def rows_are_those_of_the_model(self) -> None:
        with self.registry.database.read() as session:
            rows = JobRepository(session).list(limit=1000)
            runnable = ClaimRepository(session).runnable()
        assert {job.id: seen(job) for job in rows} == {job.id: job.seen() for job in self.model.jobs.values()}
        queues = [job.queue for job in self.model.runnable()]
        assert runnable == {queue: queues.count(queue) for queue in queues}

    def teardown(self) -> None:
        with self.registry.database.read() as session:
            events, versions = EventRepository(session), VersionRepository(session).list()
            for job in self.model.jobs.values():
                assert [event.message for event in events.list(job.id) if event.kind == "state"] == job.states
        published = {
            task: [version.job for version in versions if version.task == task] for task in self.model.versions
        }
        assert published == self.model.versions
        for task, jobs in published.items():
            numbers = [version.version for version in versions if version.task == task]
            assert numbers == list(range(1, len(jobs) + 1))


def done(session: Any, token: Token, task: str, what: str) -> Any:
    """Do it in the registry; what it answers, if anything that the model knows."""
    claims = ClaimRepository(session)
    if what == "heartbeat":
        return claims.heartbeat(*token, LEASE)
    if what == "note":
        return claims.append(*token, "note", "step")
    if what == "published":
        draft, result = sample_version(task, job=token[0]), {"state": "succeeded"}
        published = VersionRepository(session).publish(draft, sample_task(task), attempt=token[1], result=result)
        return published.version
    if what == "released":
        claims.release(*token)
    elif what == "later":
        claims.retry_later(*token, {}, DELAY_SECONDS)
    else:
        claims.finish(*token, JobState(what))
    return None


def seen(job: Any) -> dict[str, Any]:
    return {
        "state": job.state, "attempt": job.attempt, "max_attempts": job.max_attempts, "worker": job.worker,
        "worker_pid": job.worker_pid, "cancel_requested": job.cancel_requested,
        "leased": job.lease_expires_at is not None,
    }  # fmt: skip


def enter(session: Any, name: str) -> None:
    WorkerRepository(session).enter(name, WorkerState.RUNNING, queues=QUEUES, host="here", device="cpu")


def explore(registry: Registry, examples: int, steps: int) -> None:
    machine = type("QueueHere", (Queue,), {"registry": registry})
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                database=None,
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        registry.database.dispose()


def test_on_sqlite_every_order_of_events_ends_as_in_the_model(sqlite_url: str) -> None:
    explore(on_sqlite(sqlite_url), examples=12, steps=50)


@pytest.mark.services
def test_on_postgresql_every_order_of_events_ends_as_in_the_model(postgres_url: str) -> None:
    registry = on_postgresql(postgres_url)
    try:
        explore(registry, examples=6, steps=40)
    finally:
        drop_clock(postgres_url)


def drop_clock(url: str) -> None:
    database = Database(url)
    with database.write() as session:
        session.execute(text("DROP SCHEMA fake CASCADE"))
    database.dispose()
