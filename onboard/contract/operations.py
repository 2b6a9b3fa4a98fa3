"""Queues, workers and the health of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, Field

from onboard.contract.access import QuotaUse
from onboard.contract.document import Document, Name
from onboard.domain.figures import ENDED_STATES
from onboard.domain.moment import rounded, to_iso

if TYPE_CHECKING:
    from onboard.domain.figures import Ended
    from onboard.domain.job import Job
    from onboard.domain.running import RunningJob
    from onboard.domain.worker import QueueStatus, WorkerRecord


class RecentFigures(Document):
    """Figures of the jobs of a queue that ended within a window: their number, waiting times and durations."""

    window_seconds: float
    ended: int
    ended_per_hour: float
    succeeded: int
    failed: int
    cancelled: int
    dead: int
    retries: Annotated[int, Field(description="Total number of attempts beyond the first.")]
    wait_p50_seconds: float | None
    wait_p95_seconds: float | None
    run_p50_seconds: float | None
    run_p95_seconds: float | None

    @classmethod
    def of_ended(cls, ended: Ended) -> Self:
        """Return the document of the registry's counts."""
        counts = {state.value: ended.counts.get(state, 0) for state in ENDED_STATES}
        return cls(
            window_seconds=round(ended.window_seconds, 3), ended=ended.total, ended_per_hour=round(ended.per_hour, 3),
            **counts, retries=ended.retries, wait_p50_seconds=rounded(ended.wait.p50),
            wait_p95_seconds=rounded(ended.wait.p95), run_p50_seconds=rounded(ended.run.p50),
            run_p95_seconds=rounded(ended.run.p95),
        )  # fmt: skip


class QueueDocument(Document):
    """A queue: waiting and running jobs, its workers, and recently ended jobs."""

    queue: str
    paused: bool
    queued: int
    delayed: Annotated[int, Field(description="Number of queued jobs that wait for a retry after an error.")]
    running: int
    lost: Annotated[int, Field(description="Number of running jobs whose worker stopped responding.")]
    oldest_queued_seconds: float | None
    oldest_running_seconds: float | None
    live_workers: Annotated[int, Field(description="Number of workers that take its jobs, without draining ones.")]
    unserved: Annotated[bool, Field(description="Whether jobs wait and no worker serves the queue.")]
    recent: RecentFigures

    @classmethod
    def of_status(cls, status: QueueStatus, live_workers: int, recent: Ended) -> Self:
        """The document of a queue."""
        return cls.of(
            status, queue=status.name, oldest_queued_seconds=rounded(status.oldest_queued_seconds),
            oldest_running_seconds=rounded(status.oldest_running_seconds), live_workers=live_workers,
            unserved=status.queued + status.lost > 0 and live_workers == 0, recent=RecentFigures.of_ended(recent),
        )  # fmt: skip


class QueueList(Document):
    """All queues at one moment."""

    at: str
    queues: tuple[QueueDocument, ...]
    owners: Annotated[
        tuple[QuotaUse, ...], Field(description="Who has open jobs or a quota, by name of the token.")
    ] = ()


class Progress(Document):
    """The progress of a running job; null if none is running."""

    stage: str | None
    attempt: int | None
    max_attempts: int | None
    attempt_seconds: float | None
    stage_seconds: float | None
    note: Annotated[str | None, Field(description="The last line of progress inside the stage.")]
    left_seconds: float | None
    left_basis: Annotated[str | None, Field(description="The basis of the estimate of the time left.")]

    @staticmethod
    def progress_of(running: RunningJob | None) -> dict[str, Any]:
        """Return the fields of `Progress` for a running job."""
        if running is None:
            return dict.fromkeys(Progress.model_fields)
        attempt, left = running.attempt, running.left
        return {
            "stage": attempt.job.stage and attempt.job.stage.value, "attempt": attempt.job.attempt,
            "max_attempts": attempt.job.max_attempts, "attempt_seconds": round(attempt.seconds, 1),
            "stage_seconds": rounded(attempt.stage_seconds, 1), "note": attempt.note,
            "left_seconds": rounded(left.seconds, 1), "left_basis": left.basis,
        }  # fmt: skip


class RunningDocument(Progress):
    """A running job: worker, progress and remaining time."""

    job: str
    task: str
    queue: str
    worker: str | None
    host: Annotated[str | None, Field(description="Machine of the worker; null if the worker is gone.")]
    heartbeat_age_seconds: float | None
    lease_left_seconds: Annotated[float, Field(description="Negative if the lease has expired.")]

    @classmethod
    def of_running(cls, running: RunningJob) -> Self:
        """The document of a running job."""
        job = running.attempt.job
        return cls(
            **cls.progress_of(running), job=job.id, task=job.spec.task, queue=job.queue, worker=job.worker,
            host=running.host, heartbeat_age_seconds=rounded(running.heartbeat_age_seconds, 1),
            lease_left_seconds=round(running.attempt.lease_seconds, 1),
        )  # fmt: skip


class QueuedDocument(Document):
    """A waiting job."""

    job: str
    task: str
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    ahead: Annotated[int, Field(description="Number of jobs of its queue that run before it.")]
    waited_seconds: float
    retry_at: Annotated[str | None, Field(description="Earliest start of the next attempt.")]

    @classmethod
    def of_job(cls, job: Job, ahead: int, now: float) -> Self:
        """The document of a queued job."""
        return cls.of(
            job, job=job.id, task=job.spec.task, ahead=ahead,
            waited_seconds=round(max(now - job.not_before_at, 0.0), 1),
            retry_at=to_iso(job.not_before_at) if job.not_before_at > now else None,
        )  # fmt: skip


class OpenJobs(Document):
    """Running and waiting jobs at one moment; `queued_in_all` also counts those that are not listed."""

    at: str
    running: tuple[RunningDocument, ...]
    queued: tuple[QueuedDocument, ...]
    queued_in_all: int


class QueueChoice(BaseModel, extra="forbid"):
    """The queue of a request."""

    queue: Annotated[Name, Field(description="Name of a queue.")] = "default"


class QueuePaused(Document):
    """Whether a queue is paused."""

    queue: str
    paused: bool
    warning: str | None = None


class WorkerDocument(Progress):
    """A worker and its job."""

    worker: str
    state: str
    queues: tuple[str, ...]
    host: str
    pid: int | None
    device: str
    job: str | None
    task: str | None
    started_at: str | None
    heartbeat_at: str | None
    heartbeat_age_seconds: float
    facts: dict[str, Any]

    @classmethod
    def of_record(cls, record: WorkerRecord, running: RunningJob | None) -> Self:
        """The document of a worker."""
        return cls.of(
            record, **cls.progress_of(running), worker=record.name, state=record.shown_state,
            task=running and running.attempt.job.spec.task,
            heartbeat_age_seconds=round(record.heartbeat_age_seconds, 1),
        )  # fmt: skip


class WorkerList(Document):
    """All workers at one moment."""

    at: str
    workers: tuple[WorkerDocument, ...]


class WorkerDraining(Document):
    """A worker that finishes its job and leaves."""

    worker: str
    state: str


class Health(Document):
    """The response to a health check."""

    status: str
