"""Whether a worker's memory stays flat: 200 real jobs one after another, the child's resident memory after each.

    python -m bench.memory --output bench/results/worker_memory.json --table bench/results/worker_memory.md

On the embedded default, with the pipeline as people have it, on a base that is made on the spot (or `--base mini`).
From job 20 on nothing new is loaded, and every task of the run has its version. Exits with 1 when the memory after the
last job is more than 3% above that after job 20.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psutil

from bench.chaos.fleet import Fleet, running
from bench.chaos.journal import Journal
from bench.chaos.submitter import datasets, spec_of
from bench.harness.command import command_line
from bench.harness.page import made_on, table
from bench.harness.programs import resident
from bench.harness.report import made_by, report
from bench.harness.services import wait_until
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import Job, JobState
from onboard.jobs.submit import JobRequest, submit
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.settings import Settings

EARLY: Final = 20
WANTED_GROWTH: Final = 0.03
_JOB_SECONDS: Final = 600.0


def main(arguments: list[str] | None = None) -> int:
    """Run the jobs, print and write the findings."""
    parser = command_line(__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--early", type=int, default=EARLY, help="the job after which memory has to stay flat")
    parser.add_argument("--base", default="", help="name or folder of a base; empty: a tiny one is made")
    parser.add_argument("--pipeline", default="onboard.pipeline.run", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder) / "home", base=asked.base or tiny_base_in(Path(folder)), device="cpu")
        course = measure(settings, Path(folder), asked.jobs, asked.pipeline)
    return report(_document(asked, course), asked, page)


def _document(asked: argparse.Namespace, course: Sequence[int]) -> dict[str, Any]:
    early, late = course[asked.early - 1], course[-1]
    growth = round(late / early - 1, 5)
    return {
        **made_by(f"python -m bench.memory --jobs {asked.jobs}" + (f" --base {asked.base}" if asked.base else "")),
        "jobs": asked.jobs, "early_job": asked.early, "resident_bytes_after_early_job": early,
        "resident_bytes_after_last_job": late, "growth": growth, "wanted": f"growth <= {WANTED_GROWTH}",
        "kept": growth <= WANTED_GROWTH, "resident_bytes_after_every_job": list(course),
    }  # fmt: skip


def page(document: dict[str, Any]) -> str:
    """The numbers for people, in Markdown."""
    jobs, early = document["jobs"], document["early_job"]
    course = document["resident_bytes_after_every_job"]
    after = sorted({1, early, *range(50, jobs, 50), jobs})
    lines = [
        "# The memory of a worker", "",
        f"{jobs} real jobs one after another, resident memory of the worker's child after each: "
        f"**{document['growth']:+.2%}** from job {early} to job {jobs}; wanted: at most {WANTED_GROWTH:.0%}.", "",
        f"{made_on(document)}. "
        "[Numbers](worker_memory.json).", "",
        *table("after job | MiB", [[number, f"{course[number - 1] / 2**20:.1f}"] for number in after]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def tiny_base_in(folder: Path) -> str:
    """The folder of a tiny base, made there."""
    from bench.harness.tiny_base import make_tiny_base

    return str(make_tiny_base(folder / "tiny").folder)


def measure(settings: Settings, folder: Path, jobs: int, pipeline: str) -> list[int]:
    """Resident bytes of the worker's child after each job."""
    checked, bell = datasets(folder), CeleryDoorbell(settings)
    fleet = Fleet(settings, folder, Journal(folder / "journal.jsonl"), pipeline=pipeline)
    course, children = [], set()
    with closing(open_services(settings)) as services, running(fleet):
        for number in range(jobs):
            request = JobRequest(checked[number % len(checked)], spec_of(settings.base, number))
            job = _ended(services, submit(services, bell, request)[0])
            assert job.worker_pid is not None
            children.add(job.worker_pid)
            course.append(resident(psutil.Process(job.worker_pid)))
    assert len(children) == 1, f"the child was replaced: {children}"
    return course


def _ended(services: Services, job: Job) -> Job:
    def look() -> Job | None:
        with services.database.read() as session:
            now = JobRepository(session).get(job.id)
        return now if now.state.finished else None

    ended: Job = wait_until(look, _JOB_SECONDS, f"the end of job {job.id}")
    assert ended.state is JobState.SUCCEEDED, ended.error
    return ended


if __name__ == "__main__":
    sys.exit(main())
