"""Measure how fast the workers are: the duration of recent jobs relative to the estimate for their datasets."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from onboard.domain.job import Stage
from onboard.jobs.estimate import START_SECONDS, DatasetSize, estimate_seconds
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.job_figures import JobFigures, TimedJob

_MOST_JOBS: Final = 8  # only recent jobs, because the load of a machine changes
_LEAST_SECONDS: Final = 1.0  # of work; shorter jobs are too imprecise
_SLOWEST, _FASTEST = 100.0, 0.01


@dataclass(frozen=True, slots=True)
class Pace:
    """Duration of jobs here, relative to the laptop on which the estimate was measured.

    Args:
        factor: median of the recent jobs.
        jobs: number of these jobs; 0 if nothing was measured.
    """

    factor: float = 1.0
    jobs: int = 0

    @property
    def basis(self) -> str:
        """Describe what an estimate is based on."""
        if not self.jobs:
            return "on a laptop"
        return "by the last job here" if self.jobs == 1 else f"by the last {self.jobs} jobs here"

    def seconds(self, estimated: float) -> float:
        """Scale an estimate for the laptop; the start of a worker takes the same time everywhere."""
        return START_SECONDS + (estimated - START_SECONDS) * self.factor


def pace_of(database: Database, queue: str | None = None) -> Pace:
    """Return the pace of recent successful jobs, of one queue or of all."""
    with database.read() as session:
        timed = [job for job in JobFigures(session).timed(read_clock(session)) if queue in (None, job.queue)]
    return pace_of_jobs(timed)


def pace_of_jobs(timed: Iterable[TimedJob]) -> Pace:
    """Return the pace of jobs, newest first; jobs with datasets of unknown size are ignored."""
    factors = list(islice((factor for job in timed if (factor := _factor(job)) is not None), _MOST_JOBS))
    if not factors:
        return Pace()
    return Pace(min(max(statistics.median(factors), _FASTEST), _SLOWEST), len(factors))


def _factor(job: TimedJob) -> float | None:
    size = DatasetSize.of_report(job.report)
    if size is None or Stage.PROBE.value not in job.stage_seconds:  # it stopped after the readout
        return None
    tuned = Stage.GUARD.value in job.stage_seconds
    work = estimate_seconds(size, tuned=tuned, method=job.method) - START_SECONDS
    return sum(job.stage_seconds.values()) / work if work >= _LEAST_SECONDS else None
