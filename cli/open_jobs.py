"""What runs and what waits: all open jobs together, and the lines that `jobs show` says about one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cli.columns import Columns
from cli.live import keep_looking
from cli.workers import attempt_text, attempts_text, stage_text, time_left
from onboard.domain.moment import seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.domain.job import Job
    from onboard.domain.running import RunningJob
    from onboard.domain.waiting import Waiting
    from onboard.services import Services
    from onboard.watching import OpenJobs

_MOST_QUEUED: Final = 20


def watch_open_jobs(services: Services, as_json: bool, interval: float) -> None:
    """All open jobs, again and again until Ctrl-C."""
    from onboard.watching import open_jobs

    keep_looking(lambda: open_jobs(services.database, _MOST_QUEUED), _rendered, as_json, interval)


def waiting_lines(waiting: Waiting) -> list[str]:
    """Why a job waits, and what ends that."""
    return [f"Waits: {waiting.message}", *([f"  → {waiting.remedy}"] if waiting.remedy else [])]


def running_lines(running: RunningJob) -> list[str]:
    """Who works on a job, how far it is, and how long it still takes."""
    attempt, age = running.attempt, running.heartbeat_age_seconds
    worker = attempt.job.worker or "a worker"
    host = f" on {running.host}" if running.host else ""
    beat = f", heartbeat {seconds_text(age)} ago" if age is not None else ", which is gone"
    note = f": {attempt.note}" if attempt.note else ""
    lines = [
        f"Worker: {worker}{host}{beat}",
        f"Stage: {stage_text(running)}, {attempt_text(running)}{note}",
        f"Time left: {time_left(running)} ({running.left.basis})",
    ]
    if attempt.lease_seconds <= 0:
        lines.append("Its lease ran out: the next free worker takes it over.")
    return lines


def _rendered(seen: OpenJobs) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    columns = Columns(
        "job", "task", "queue", "state", "attempt", "worker", "progress", "time left", folded=("progress",)
    )
    for running in seen.running:
        job, note = running.attempt.job, running.attempt.note
        columns.add(
            job.id, job.spec.task, job.queue, "running", attempts_text(job), job.worker or "",
            (stage_text(running), note), time_left(running),
        )  # fmt: skip
    for job, ahead in seen.waiting:
        columns.add(
            job.id, job.spec.task, job.queue, "queued", attempts_text(job),
            "", _wait(seen, job, ahead), "",
        )  # fmt: skip
    more = seen.queued - len(seen.waiting)
    counted = f"{len(seen.running):,} running, {seen.queued:,} queued"
    return Group(Text(f"{counted}; {more:,} of them not shown" if more > 0 else counted), columns)


def _wait(seen: OpenJobs, job: Job, ahead: int) -> str:
    if job.not_before_at > seen.at:
        return f"tries again in {seconds_text(job.not_before_at - seen.at)}"
    waited = f"waits for {seconds_text(seen.at - job.not_before_at)}"
    return f"{waited}, {ahead:,} ahead" if ahead else waited
