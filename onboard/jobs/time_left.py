"""Estimate how long running jobs still take, from similar jobs or from the size of the dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy.orm import Session

from onboard.domain.forecast import JobTraits, TimeLeft, Timing, similar, time_left
from onboard.domain.init import InitKind
from onboard.domain.job import Job, Stage
from onboard.domain.running import RunningAttempt, RunningJob
from onboard.domain.worker import WorkerRecord
from onboard.jobs.estimate import START_SECONDS, DatasetSize, estimate_seconds
from onboard.registry.job_figures import JobFigures, TimedJob
from onboard.registry.shards import ShardRepository

_ESTIMATED_BASE: Final = "mini"  # the constants of `onboard.jobs.estimate` were measured on it


def running_jobs(session: Session, now: float, workers: Sequence[WorkerRecord]) -> list[RunningJob]:
    """Return all running jobs, longest-running first; `workers` tell where each one runs."""
    figures = JobFigures(session)
    attempts = figures.attempts(now)
    timings = [_timing(timed) for timed in figures.timed(now)] if attempts else []
    records = {worker.name: worker for worker in workers}
    running = [_running(attempt, records.get(attempt.job.worker or ""), timings) for attempt in attempts]
    return [_with_shards(session, now, job) if job.attempt.job.spec.is_bulk else job for job in running]


def _with_shards(session: Session, now: float, running: RunningJob) -> RunningJob:
    """Derive the progress of a job that answers files from its shards: other jobs say little about it."""
    attempt = running.attempt
    standing = ShardRepository(session).standing(attempt.job.id, attempt.job.claimed_at, now)
    if standing is None:
        return replace(running, left=TimeLeft(None, "its rows are still being counted"))
    return replace(running, left=standing.left, attempt=replace(attempt, note=standing.sentence))


def _running(attempt: RunningAttempt, worker: WorkerRecord | None, timings: Sequence[Timing]) -> RunningJob:
    return RunningJob(
        attempt=attempt,
        host=worker.host if worker else None,
        heartbeat_age_seconds=worker.heartbeat_age_seconds if worker else None,
        left=_time_left(attempt, worker.device if worker else "", timings),
    )


def _time_left(attempt: RunningAttempt, device: str, timings: Sequence[Timing]) -> TimeLeft:
    job, report = attempt.job, _report(attempt.job)
    size = _size(report)
    spec = job.spec
    likeness = JobTraits(job.queue, spec.options.get("base_digest"), spec.tune_hypernetwork, spec.method)
    like = similar(likeness, size, timings)
    whole = _whole_seconds(job, report, device)
    if like or whole is None:
        return time_left(job.stage, attempt.stage_seconds or 0.0, size, like)
    if attempt.seconds >= whole:
        return TimeLeft(None, "takes longer than its dataset size suggests")
    return TimeLeft(whole - attempt.seconds, "the size of its dataset")


def _whole_seconds(job: Job, report: Mapping[str, Any], device: str) -> float | None:
    """Estimate the total seconds of a first attempt from its dataset; None if that is impossible.

    Whether `auto` tunes is unknown until its stage; until then no tuning is assumed.
    """
    spec, size = job.spec, DatasetSize.of_report(report)
    if size is None or spec.base != _ESTIMATED_BASE or job.attempt != 1:
        return None
    tuned = spec.tune_hypernetwork == "always" or job.stage in (Stage.TUNE, Stage.GUARD)
    unlabelled = spec.options.get("unlabelled", {}).get("considered", 0)
    gpu, probed = device.startswith("cuda"), spec.start.kind is InitKind.AUTO
    return estimate_seconds(
        size, unlabelled=unlabelled, probed=probed, tuned=tuned, gpu=gpu, method=spec.method,
        readout=spec.readout != "never",
    )  # fmt: skip


def _timing(timed: TimedJob) -> Timing:
    stages = {Stage(name): seconds for name, seconds in timed.stage_seconds.items() if name in set(Stage)}
    return Timing(JobTraits(timed.queue, timed.base, timed.tuning, timed.method), _size(timed.report), stages)


def _report(job: Job) -> Mapping[str, Any]:
    report = job.spec.options.get("dataset_report")
    return report if isinstance(report, Mapping) else {}


def _size(report: Mapping[str, Any]) -> float | None:
    """Return the amount of work of a dataset, in seconds of an arbitrary machine: only ratios are meaningful."""
    size = DatasetSize.of_report(report)
    return None if size is None else estimate_seconds(size) - START_SECONDS
