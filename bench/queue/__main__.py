"""The cost of a queue of 10,000 jobs: submitting, claiming, looking at it, dispatching, listing 10,000 versions.

    python -m bench.queue --output bench/results/queue.json --table bench/results/queue.md

Each figure is in milliseconds and as a multiple of a bare `SELECT 1` by the same engine, so that machines can be
compared. SQLite and PostgreSQL both force every commit to disk. Commands are whole processes, most of it Python
starting. Exits with 1 when a figure is above the target.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import text

from bench.harness.command import CHECKOUT, asked_sizes, command_line
from bench.harness.deployed import MANY, PLACES, add_versions, analyse, deployed, measurable
from bench.harness.opinions import opinions
from bench.harness.page import made_on, table, table_row
from bench.harness.programs import PROGRAM, environment_of
from bench.harness.report import made_by, report
from onboard.broker.doorbell import CeleryDoorbell
from onboard.data.read import ReadOptions, read_dataset
from onboard.domain.job import JobSpec
from onboard.domain.worker import WorkerState
from onboard.jobs.status import queues
from onboard.jobs.submit import JobRequest, submit
from onboard.operations.processes import host_name
from onboard.registry.claims import ClaimRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.versions import VersionRepository
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings

WANTED: Final = {"submit": 50.0, "claim": 20.0, "queue show": 300.0, "versions": 100.0}  # ms, 95th percentile
WORKERS: Final = (1, 4, 16)  # that claim at the same time
_SHOWN: Final = 200  # versions, as the command does by default


@dataclass(frozen=True)
class Sizes:
    """How much is measured.

    Args:
        jobs: that wait.
        versions: of one task.
        calls: of each function.
        commands: of each whole command.
        dispatched: jobs for each number of workers.
    """

    jobs: int = 10_000
    versions: int = 10_000
    calls: int = 200
    commands: int = 5
    dispatched: int = 960


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    asked, sizes = asked_sizes(command_line(__doc__), Sizes(), arguments)
    places = {name: measured_at(name, sizes) for name in measurable()}
    document = {
        **made_by("python -m bench.queue"), "sizes": asdict(sizes), "wanted_ms": WANTED, "places": places,
        "kept": all(figures[what]["p95"] <= most for figures in places.values() for what, most in WANTED.items()),
    }  # fmt: skip
    return report(document, asked, page)


def measured_at(name: str, sizes: Sizes) -> dict[str, dict[str, Any]]:
    """The figures of one place, each call by its name."""
    with deployed(name) as (settings, folder):
        return measure(settings, folder, sizes)


def measure(settings: Settings, folder: Path, sizes: Sizes) -> dict[str, dict[str, Any]]:
    """Every figure of one place."""
    with closing(open_services(settings)) as services:
        place = LongQueue(services, folder, sizes)
        place.fill()
        figures = {
            "SELECT 1": place.timed(place.select_one),
            "submit": place.timed(place.submit),
            "claim": place.timed(place.claim),
            "queue show": place.timed(lambda: queues(services.database)),
            "versions": place.timed(place.list_versions),
            "onboard submit": place.command("submit", "--dataset", str(place.rows), "--task", "told"),
            "onboard queue show": place.command("queue", "show"),
            f"onboard versions {MANY}": place.command("versions", MANY),
            **{f"dispatch, {workers} workers": place.dispatch(workers) for workers in WORKERS},
        }
    one = figures["SELECT 1"]["p50"]
    return {name: {**figure, "p50_by_select_1": round(figure["p50"] / one, 1)} for name, figure in figures.items()}


class LongQueue:
    """A deployment with a long queue, without workers that take anything."""

    def __init__(self, services: Services, folder: Path, sizes: Sizes) -> None:
        self._services = services
        self._sizes = sizes
        self.rows = folder / "told.jsonl"
        self.rows.write_text("".join(json.dumps(row) + "\n" for row in opinions(32)), encoding="utf-8")
        self._checked = read_dataset(self.rows, ReadOptions(suspects=False))
        self._bell = CeleryDoorbell(services.settings)

    def fill(self) -> None:
        """The jobs and the versions; a worker's row, so that no command starts one."""
        self.submit()
        with self._services.database.write() as session:
            spec = JobRepository(session).list(limit=1)[0].spec
            for _ in range(self._sizes.jobs - 1):
                JobRepository(session).add(spec)
            WorkerRepository(session).enter(
                "nobody", WorkerState.RUNNING, queues=["default"], host=host_name(), device="cpu", pid=os.getpid()
            )
            add_versions(session, self._sizes.versions)
        analyse(self._services.database)

    def select_one(self) -> None:
        """The minimum cost of a call."""
        with self._services.database.read() as session:
            session.execute(text("SELECT 1"))

    def submit(self) -> None:
        """The use case with checked rows, whose snapshot is stored already."""
        spec = JobSpec(task="told", dataset="", base=self._services.settings.base)
        submit(self._services, self._bell, JobRequest(self._checked, spec))

    def claim(self) -> None:
        """One claim; the job stays claimed."""
        with self._services.database.write() as session:
            assert ClaimRepository(session).claim("nobody", ["default"], pid=1) is not None

    def list_versions(self) -> None:
        """The newest versions of one task, as many as `onboard versions` shows."""
        with self._services.database.read() as session:
            newest = VersionRepository(session).newest(MANY, _SHOWN)
            assert newest[-1].version == self._sizes.versions

    def timed(self, call: Callable[[], Any], calls: int | None = None) -> dict[str, Any]:
        """Milliseconds of a function, called so many times after a first time that does not count."""
        call()
        return summary([_milliseconds(call) for _ in range(calls or self._sizes.calls)])

    def command(self, *words: str) -> dict[str, Any]:
        """Milliseconds of a whole command, from its start to its end."""
        environment = environment_of(self._services.settings)

        def run() -> None:
            subprocess.run([PROGRAM, *words, "--json"], env=environment, check=True, capture_output=True)

        return self.timed(run, self._sizes.commands)

    def dispatch(self, workers: int) -> dict[str, Any]:
        """Milliseconds per job when so many processes claim and end jobs that do nothing; and of one such turn."""
        quota = self._sizes.dispatched // workers
        command = [sys.executable, "-m", "bench.queue.loop", self._services.database.url]
        with ExitStack() as stack:
            loops = [
                stack.enter_context(
                    subprocess.Popen(
                        [*command, f"w{number}", str(quota)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                        cwd=CHECKOUT,
                    )
                )
                for number in range(workers)
            ]  # fmt: skip
            for loop in loops:
                assert loop.stdout is not None
                assert loop.stdout.readline() == "ready\n"
            started = time.perf_counter()
            for loop in loops:
                assert loop.stdin is not None
                loop.stdin.write("go\n")
                loop.stdin.flush()
            turns = [json.loads(loop.stdout.readline()) for loop in loops if loop.stdout is not None]
            seconds = time.perf_counter() - started
        per_job = 1000 * seconds / (quota * workers)
        return {**summary([milliseconds for turn in turns for milliseconds in turn]), "per_job": round(per_job, 2)}


def summary(milliseconds: Sequence[float]) -> dict[str, Any]:
    """Number, median, 95th percentile."""
    ordered = sorted(milliseconds)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {"n": len(ordered), "p50": round(statistics.median(ordered), 3), "p95": round(p95, 3)}


def _milliseconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


def page(document: dict[str, Any]) -> str:
    """The figures for people, in Markdown."""
    sizes, places = document["sizes"], document["places"]
    head = "".join(f" {PLACES[name]} p50 | p95 | by `SELECT 1` |" for name in places)
    lines = [
        "# Cost of a long queue", "",
        f"{sizes['jobs']:,} jobs wait, one task has {sizes['versions']:,} versions, of which `versions` reads the "
        f"newest {_SHOWN}. Milliseconds; commands are whole processes, which mostly start Python. The last column of "
        "each database is the median divided by that of a bare `SELECT 1`.", "",
        f"{made_on(document)}, every commit forced to disk. "
        "[Numbers](queue.json).", "",
        f"| |{head} p95 wanted |", f"|---|{'---|---|---|' * len(places)}---|",
    ]  # fmt: skip
    for what in next(iter(places.values())):
        cells = [cell for figures in places.values() for cell in _cells(figures[what])]
        lines.append(table_row(what, *cells, f"≤ {WANTED[what]:.0f}" if what in WANTED else ""))
    lines += [
        "",
        *table(
            ["workers", *(f"{PLACES[name]}, ms per job" for name in places)],
            [
                [workers, *(figures[f"dispatch, {workers} workers"]["per_job"] for figures in places.values())]
                for workers in WORKERS
            ],
        ),
        "",
        "A turn of `dispatch` is a claim and the end of the job, in two transactions, while the others do the same.",
    ]
    return "\n".join(lines) + "\n"


def _cells(figure: dict[str, Any]) -> tuple[str, str, str]:
    return f"{figure['p50']:.1f}", f"{figure['p95']:.1f}", f"{figure['p50_by_select_1']:g} ×"


if __name__ == "__main__":
    sys.exit(main())
