"""How an installation with many jobs an hour behaves: waits, fairness, load of the database, what saturates first.

    python -m bench.fleet --output bench/results/fleet.json --table bench/results/fleet.md [--minutes 20]

Real: PostgreSQL (fsync on) with 2,000 tasks and 200,000 versions, Redis, Celery workers with their
leases and heartbeats, submissions by 50 owners as the HTTP API makes them. Simulated: the stages, which sleep for as
long as they took in bench/results/first_version.json, because two cores cannot compute for sixteen workers.

Two rates are offered, each in a separate installation. 1,000 jobs an hour for --minutes; then ten times as many
for a quarter of that time, with stages of a tenth, so that the queue, the database and the broker carry 10,000 an hour
with the same workers. Arrivals are random (exponential gaps). Afterwards one owner queues 10,000 jobs, and the first
job of another owner, submitted behind them, is timed.

A wait is the time from the row of a job to its claim. It is compared with a queue of as many servers in which the same
arrivals are served in turn for the same seconds, computed event by event.
"""

from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import insert, select

from bench.fleet.load import Load, load_now
from bench.fleet.pipeline import LABELS
from bench.fleet.waits import modelled_waits, percentile
from bench.harness.command import RESULTS, asked_sizes, command_line
from bench.harness.deployed import analyse
from bench.harness.many_jobs import add_tasks
from bench.harness.opinions import opinions
from bench.harness.page import made_on, met, table
from bench.harness.programs import ended_in_order, start_worker
from bench.harness.report import made_by, report
from bench.harness.services import PostgresServer, RedisServer, missing, wait_until
from bench.harness.tiny_base import make_tiny_base
from onboard.broker.doorbell import CeleryDoorbell
from onboard.data.read import Checked, ReadOptions, read_dataset
from onboard.domain.job import JobSpec, JobState, new_job_id
from onboard.domain.worker import WorkerState
from onboard.jobs.submit import JobRequest, submit
from onboard.registry.jobs import JobRepository
from onboard.registry.schema import upgrade
from onboard.registry.services import Services, open_services
from onboard.registry.tables import JobRow
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings

OWNERS: Final = 50
RATES: Final[Mapping[str, tuple[float, float, float]]] = {  # jobs an hour, share of the stages' length, of the minutes
    "1,000 an hour": (1_000.0, 1.0, 1.0), "10,000 an hour": (10_000.0, 0.1, 0.25),
}  # fmt: skip
WANTED_DATABASE_MS: Final = 30.0  # of the database, for each job
WANTED_DEVIATION: Final = 0.2  # of the 99th percentile of waits from the model's
AnyInstallation = TypeVar("AnyInstallation", bound="Installation")
DrawTuned = Callable[[random.Random], tuple[dict[str, float], dict[str, Any]] | None]
"""Draws whether a job tunes: the lengths of its stages and its `pipeline.Tuning`, or None."""
_START_SECONDS: Final = 300.0  # for all workers to be ready
_DRAIN_SECONDS: Final = 600.0
_STOP_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Args:
        minutes: of arrivals at the lower rate.
        workers: Celery workers, a job each at a time.
        tasks, versions: that the registry holds before.
        backlog: jobs that the busy owner has queued when the quiet one submits.
    """

    minutes: float = 20.0
    workers: int = 12
    tasks: int = 2_000
    versions: int = 200_000
    backlog: int = 10_000


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results; 1 if a target is missed."""
    options, sizes = asked_sizes(command_line(__doc__), Sizes(), arguments)
    if lacking := missing("postgres") or missing("redis-server"):
        print(f"skipped: {lacking} is not installed")
        return 0
    first = json.loads((RESULTS / "first_version.json").read_text(encoding="utf-8"))
    rates = {}
    for name, (per_hour, length, share) in RATES.items():
        stages = {stage: round(length * seconds, 3) for stage, seconds in first["stages"].items()}
        with running_installation(sizes, Installation) as installation:
            rates[name] = installation.measure(per_hour, 60 * share * sizes.minutes, stages)
    words = "" if sizes == Sizes() else f" --minutes {sizes.minutes:g}"
    document = {**made_by(f"python -m bench.fleet{words}"), "sizes": asdict(sizes), "owners": OWNERS, "rates": rates}
    return report({**document, "kept": all(reached for *_, reached in verdicts(document))}, options, page)


@contextmanager
def running_installation(sizes: Sizes, kind: type[AnyInstallation]) -> Iterator[AnyInstallation]:
    """Servers, a registry that has been used for years, and workers; `kind` is Installation or a class of it."""
    with ended_in_order(), tempfile.TemporaryDirectory() as made, ExitStack() as stack:
        folder = Path(made)
        postgres, redis = stack.enter_context(PostgresServer(durable=True)), stack.enter_context(RedisServer())
        upgrade(url := postgres.create("fleet"))
        base = str(make_tiny_base(folder / "base").folder)
        settings = Settings(home=folder / "home", base=base, device="cpu", database_url=url, broker_url=redis.url)
        services = stack.enter_context(closing(open_services(settings)))
        installation = kind(services, sizes, _checked(folder), postgres.pid)
        installation.fill()
        installation.start_workers(folder)
        stack.callback(installation.stop_workers)
        installation.wait_for_workers()
        yield installation


def _checked(folder: Path) -> Checked:
    rows = folder / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in opinions(32, LABELS)), encoding="utf-8")
    return read_dataset(rows, ReadOptions(suspects=False))


class Installation:
    """Services with workers that are offered jobs.

    Args:
        services: registry, broker and files.
        sizes: how much is measured.
        checked: the rows of every job.
        postmaster: process id of PostgreSQL.
    """

    def __init__(self, services: Services, sizes: Sizes, checked: Checked, postmaster: int) -> None:
        self._services, self._sizes, self._checked, self._postmaster = services, sizes, checked, postmaster
        self._bell = CeleryDoorbell(services.settings)
        self._workers: list[subprocess.Popen[bytes]] = []

    def fill(self) -> None:
        """Register the base by a first job, which is ended again, then add tasks and versions."""
        first = self._submit("first", "nobody", {})
        with self._services.database.write() as session:
            JobRepository(session).cancel(first)
            add_tasks(session, self._sizes.tasks, self._sizes.versions)
        analyse(self._services.database)

    def start_workers(self, folder: Path) -> None:
        """Start all of them."""
        for number in range(1, self._sizes.workers + 1):
            options = ("--device", "cpu", "--pipeline", "bench.fleet.pipeline")
            process = start_worker(
                self._services.settings, f"fleet-{number}", *options, log=folder / f"worker-{number}.log",
                environment={"OMP_NUM_THREADS": "1"},
            )  # fmt: skip
            self._workers.append(process)

    def wait_for_workers(self) -> None:
        """Wait until every worker can take jobs."""

        def ready() -> bool:
            with self._services.database.read() as session:
                workers = WorkerRepository(session).list()
            return sum(worker.state is WorkerState.RUNNING for worker in workers) == len(self._workers)

        wait_until(ready, _START_SECONDS, "the workers")

    def stop_workers(self) -> None:
        """Stop all of them, and kill who does not end."""
        for process in self._workers:
            process.terminate()
        for process in self._workers:
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def measure(self, per_hour: float, seconds: float, stages: dict[str, float]) -> dict[str, Any]:
        """Offer jobs for so many seconds, let the queue run empty, then time the first job of a quiet owner."""
        load_before, began = self._load(), time.time()
        highest = self._offer(per_hour, seconds, stages)
        offered_seconds = time.time() - began
        self._drain()
        load_after, measured_seconds = self._load(), time.time() - began
        jobs = self._jobs(began)
        figures = _figures(jobs, self._sizes.workers, sum(stages.values()))
        count = len(jobs)
        return {
            "stages": stages,
            "minutes": round(seconds / 60, 1),
            "jobs": count,
            "offered_per_hour": round(3600 * count / offered_seconds),
            **figures,
            "submit_ms": highest["submit_ms"],
            "database_ms_per_job": round((load_after.active_ms - load_before.active_ms) / count, 1),
            "commits_per_job": round((load_after.commits - load_before.commits) / count, 1),
            "postgres_cores": round((load_after.postgres_cpu - load_before.postgres_cpu) / measured_seconds, 3),
            "worker_cores": round((load_after.worker_cpu - load_before.worker_cpu) / measured_seconds, 3),
            "connections": highest["connections"],
            "redis_bytes": highest["redis_bytes"],
            "worker_bytes": highest["worker_bytes"] // len(self._workers),
            "database_bytes_per_job": round((load_after.bytes - load_before.bytes) / count),
            "quiet_owner": {
                "seconds": self._quiet_owner(stages),
                "job_seconds": round(sum(stages.values()) + figures["overhead_seconds"], 2),
            },
        }

    def _offer(
        self, per_hour: float, seconds: float, stages: dict[str, float], draw_tuned: DrawTuned = lambda _: None
    ) -> dict[str, Any]:
        """Submit at random moments; what was highest meanwhile. `draw_tuned` decides which jobs tune."""
        draw = random.Random(0)
        began, next_at, number, look_at = time.monotonic(), 0.0, 0, 0.0
        loads, submit_ms = [self._load()], []
        while (next_at := next_at + draw.expovariate(per_hour / 3600)) < seconds:
            time.sleep(max(0.0, began + next_at - time.monotonic()))
            started = time.perf_counter()
            tuned = draw_tuned(draw)
            self._submit(f"new-{number}", f"owner-{draw.randrange(OWNERS):02d}", *(tuned or (stages,)))
            submit_ms.append(1000 * (time.perf_counter() - started))
            number += 1
            if next_at >= look_at:
                loads.append(self._load())
                look_at = next_at + seconds / 20
        return {
            "submit_ms": {"p50": round(percentile(submit_ms, 0.5), 1), "p99": round(percentile(submit_ms, 0.99), 1)},
            **{
                key: max(getattr(load, key) for load in loads) for key in ("connections", "redis_bytes", "worker_bytes")
            },
        }

    def _submit(self, task: str, owner: str, stages: dict[str, float], tuning: dict[str, Any] | None = None) -> str:
        options = {"sleep": stages, **({} if tuning is None else {"tuning": tuning})}
        spec = JobSpec(task=task, dataset="", base=self._services.settings.base, options=options)
        job, _ = submit(self._services, self._bell, JobRequest(self._checked, spec, owner=owner))
        return job.id

    def _drain(self) -> None:
        wait_until(lambda: not self._open(), _DRAIN_SECONDS, "the queue to run empty")

    def _open(self) -> bool:
        with self._services.database.read() as session:
            open_jobs = select(JobRow.number).where(JobRow.state.in_([JobState.QUEUED, JobState.RUNNING])).limit(1)
            return session.scalar(open_jobs) is not None

    def _jobs(self, since: float) -> list[Mapping[str, Any]]:
        table = JobRow
        columns = (table.created_at, table.started_at, table.finished_at, table.state, table.owner, table.attempt)
        with self._services.database.read() as session:
            rows = session.execute(select(*columns).where(table.created_at >= since - 1).order_by(table.number))
            return [dict(row._mapping) for row in rows]

    def _load(self) -> Load:
        pids = [process.pid for process in self._workers]
        return load_now(self._services.database, self._services.settings.broker_url, self._postmaster, pids)

    def _quiet_owner(self, stages: dict[str, float]) -> float:
        """The wait of a quiet owner's first job behind a long queue of another owner."""
        job = self._submit("busy", "busy", stages)
        with self._services.database.write() as session:
            row = session.scalars(select(JobRow).where(JobRow.id == job)).one()
            backlog_job = {
                column.key: getattr(row, column.key)
                for column in JobRow.__mapper__.column_attrs
                if column.key != "number"
            }
            backlog_job = {**backlog_job, "state": JobState.QUEUED, "attempt": 0, "started_at": None, "stage": None}
            backlog_job |= {"worker": None, "worker_pid": None, "claimed_at": None, "lease_expires_at": None}
            backlog_job |= {"deadline_at": None, "cancel_requested": False, "key": None}
            turn = row.turn
            session.execute(
                insert(JobRow),
                [
                    {**backlog_job, "id": new_job_id(), "turn": turn + position}
                    for position in range(1, self._sizes.backlog + 1)
                ],
            )
        wait_until(self._all_busy, _START_SECONDS, "every worker to have a job")
        quiet = self._submit("quiet", "quiet", stages)
        return self._wait_of(quiet)

    def _all_busy(self) -> bool:
        with self._services.database.read() as session:
            running = session.scalars(select(JobRow.number).where(JobRow.state == JobState.RUNNING)).all()
            return len(running) == len(self._workers)

    def _wait_of(self, job: str) -> float:
        def started() -> float:
            with self._services.database.read() as session:
                row = session.execute(select(JobRow.started_at, JobRow.created_at).where(JobRow.id == job)).one()
                return 0.0 if row.started_at is None else max(float(row.started_at - row.created_at), 0.001)

        return round(float(wait_until(started, _DRAIN_SECONDS, "the quiet owner's job")), 2)


def _figures(jobs: Sequence[Mapping[str, Any]], workers: int, stage_seconds: float) -> dict[str, Any]:
    """Return waits, also by the model, the mean wait of each owner, and the number of lost jobs."""
    published = [job for job in jobs if job["state"] == JobState.SUCCEEDED]
    waits = [job["started_at"] - job["created_at"] for job in published]
    runs = [job["finished_at"] - job["started_at"] for job in published]
    modelled = modelled_waits([job["created_at"] for job in published], runs, workers)
    by_owner: dict[str, list[float]] = {}
    for job, wait in zip(published, waits, strict=True):
        by_owner.setdefault(job["owner"], []).append(wait)
    means = sorted(statistics.mean(waited) for waited in by_owner.values())
    return {
        "lost": len(jobs) - len(published),
        "second_attempts": sum(job["attempt"] > 1 for job in jobs),
        "busy_share": round(sum(runs) / workers / (max(job["finished_at"] for job in jobs) - jobs[0]["created_at"]), 3),
        "overhead_seconds": round(statistics.median(runs) - stage_seconds, 3),
        "wait_seconds": {"p50": round(percentile(waits, 0.5), 2), "p99": round(percentile(waits, 0.99), 2)},
        "modelled_seconds": {"p50": round(percentile(modelled, 0.5), 2), "p99": round(percentile(modelled, 0.99), 2)},
        "owners_mean_wait_seconds": {"least": round(means[0], 2), "most": round(means[-1], 2)},
    }


def verdicts(document: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return each target, the measured value, and whether the target was reached."""
    checks = []
    for name, rate in document["rates"].items():
        checks.append((f"{name}: no job is lost", f"{rate['lost']} of {rate['jobs']:,}", rate["lost"] == 0))
        wait, model = rate["wait_seconds"]["p99"], rate["modelled_seconds"]["p99"]
        near = abs(wait - model) <= max(WANTED_DEVIATION * model, 1.0)
        text = f"{wait:g} s, model {model:g} s"
        checks.append((f"{name}: 99th percentile of waits within 20% of the model's, or a second", text, near))
        spent = rate["database_ms_per_job"]
        target = f"{name}: at most {WANTED_DATABASE_MS:g} ms of the database a job"
        checks.append((target, f"{spent:g} ms", spent <= WANTED_DATABASE_MS))
        quiet = rate["quiet_owner"]
        text = f"{quiet['seconds']:g} s, a job {quiet['job_seconds']:g} s"
        target = f"{name}: a quiet owner's first job waits at most the length of a job"
        checks.append((target, text, quiet["seconds"] <= quiet["job_seconds"]))
    return checks


def page(document: Mapping[str, Any]) -> str:
    """The figures for people, in Markdown."""
    sizes, rates = document["sizes"], document["rates"]
    lines = [
        "# Many jobs an hour", "",
        f"{made_on(document)}. [Numbers](fleet.json). {sizes['workers']} Celery workers, PostgreSQL with "
        f"{sizes['tasks']:,} tasks and {sizes['versions']:,} versions (fsync on), Redis, files in a "
        f"folder, {document['owners']} owners. All of it shares the cores of one machine. Stages sleep for as long as "
        "they took in [first_version](first_version.md), at the higher rate for a tenth of that.", "",
        *table("target | found | verdict", [(what, text, met(reached)) for what, text, reached in verdicts(document)]),
        "",
        *table(["", *rates], _rows(list(rates.values()))), "",
        "The model is a queue with as many servers, in which the same arrivals are served in turn for the same "
        "seconds. Milliseconds of the database are those in which its connections executed statements, heartbeats and "
        "checks for cancellation included. Memory of a worker counts what its two processes share twice.",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _rows(rates: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    def row(name: str, form: str, *keys: str) -> list[str]:
        cells = []
        for rate in rates:
            value: Any = rate
            for key in keys:
                value = value[key]
            cells.append(form.format(value))
        return [name, *cells]

    return [
        row("minutes of arrivals", "{:g}", "minutes"),
        row("jobs", "{:,}", "jobs"),
        row("jobs an hour, offered", "{:,}", "offered_per_hour"),
        row("workers busy", "{:.0%}", "busy_share"),
        row("wait, median, s", "{:g}", "wait_seconds", "p50"),
        row("wait, 99%, s", "{:g}", "wait_seconds", "p99"),
        row("model, median, s", "{:g}", "modelled_seconds", "p50"),
        row("model, 99%, s", "{:g}", "modelled_seconds", "p99"),
        row("mean wait of an owner, least, s", "{:g}", "owners_mean_wait_seconds", "least"),
        row("mean wait of an owner, most, s", "{:g}", "owners_mean_wait_seconds", "most"),
        row("time of a job outside its stages, s", "{:g}", "overhead_seconds"),
        row("submission, median, ms", "{:g}", "submit_ms", "p50"),
        row("submission, 99%, ms", "{:g}", "submit_ms", "p99"),
        row("database, ms a job", "{:g}", "database_ms_per_job"),
        row("transactions a job", "{:g}", "commits_per_job"),
        row("PostgreSQL, cores", "{:g}", "postgres_cores"),
        row("all workers, cores", "{:g}", "worker_cores"),
        row("connections, most", "{:,}", "connections"),
        row("Redis, bytes, most", "{:,}", "redis_bytes"),
        row("a worker, bytes", "{:,}", "worker_bytes"),
        row("growth of the database, bytes a job", "{:,}", "database_bytes_per_job"),
    ]


if __name__ == "__main__":
    sys.exit(main())
