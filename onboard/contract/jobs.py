"""Jobs in requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from onboard.contract.document import Document, Metrics, later
from onboard.contract.operations import RunningDocument
from onboard.domain.job import EventKind, JobState
from onboard.domain.moment import rounded, to_iso
from onboard.domain.names import NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onboard.domain.job import Job
    from onboard.domain.waiting import Waiting

NAME: Final = NAME_PATTERN


class JobStatus(Document):
    """The fields of every document about a job.

    version: number of its published version, if any.
    """

    id: Annotated[str, Field(alias="job")]
    task: str
    state: JobState
    version: int | None = None


class Report(JobStatus):
    """The result of a job. Fields that are not known yet are None.

    metrics: by split, as of a version.
    weak: whether the version is no better than always giving the commonest answer; weak_reason: the numbers that
        say so.
    """

    metrics: Metrics | None = None
    weak: bool | None = None
    weak_reason: str | None = None

    @property
    def job(self) -> str:
        """Its id."""
        return self.id


class Accepted(Document):
    """A queued job. `warning` is a reason why it may have to wait; `warnings` are those of the dataset's checks."""

    job: str
    state: JobState
    task: str
    warning: str | None = None
    warnings: tuple[dict[str, Any], ...] = ()

    @classmethod
    def of_job(cls, job: Job, warning: str | None, findings: Sequence[Any] | None = None, **more: Any) -> Self:
        """Return the document of a queued job. The default of `findings` are those of its dataset."""
        found = job.spec.options["dataset_report"]["warnings"] if findings is None else findings
        return cls(job=job.id, state=job.state, task=job.spec.task, warning=warning, warnings=tuple(found), **more)


class JobFacts(Document):
    """The facts of a job that every document about it begins with."""

    job: str
    task: str
    state: JobState
    stage: str | None
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    time_limit_seconds: float | None
    cancel_requested: bool
    owner: str | None
    worker: str | None
    created_at: str | None
    started_at: str | None
    finished_at: str | None
    error: dict[str, Any] | None

    @classmethod
    def of_job(cls, job: Job, **more: Any) -> Self:
        """Return the document of a job."""
        return cls.of(job, job=job.id, task=job.spec.task, **more)


class JobBrief(JobFacts):
    """A job of a list."""

    version: int | None


class JobList(Document):
    """A page of jobs, newest first."""

    jobs: tuple[JobBrief, ...]
    next: Annotated[str | None, Field(description="Cursor of the next page; null on the last one.")]


class JobEventDocument(Document):
    """One event in a job's log."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)

    id: int
    job: str = later("")
    attempt: int = later(0)
    at: str = later("")
    kind: EventKind
    stage: str | None = later()
    message: str
    seconds: float | None = later()
    numbers: dict[str, Any] = Field(default_factory=dict)


class LoggedEvent(JobEventDocument):
    """An event with the worker of its attempt."""

    worker: str | None


class WaitingDocument(Document):
    """Why a queued job waits; over HTTP the remedy is a request, and `command` the command that it stands for."""

    model_config = ConfigDict(extra="allow")

    message: str
    remedy: Annotated[str, Field(description="The command that ends the wait; empty if waiting does.")]
    queue: str
    ahead: Annotated[int, Field(description="Jobs of its queue that are claimed before it.")]
    paused: bool
    live_workers: int
    outdated_workers: Annotated[int, Field(description="Workers of a release that cannot run the job.")]
    lost_worker: Annotated[str | None, Field(description="The unresponsive worker that had it.")]
    retry_at: str | None
    retry_in_seconds: float | None
    last_error: str | None
    starts_in_seconds: Annotated[float | None, Field(description="A forecast; null if unknown.")]

    @classmethod
    def of_waiting(cls, waiting: Waiting) -> Self:
        """Return the document of a wait."""
        retry = waiting.retry
        return cls.of(
            waiting, retry_at=to_iso(retry.at) if retry else None,
            retry_in_seconds=round(retry.in_seconds, 1) if retry else None, last_error=retry.error if retry else None,
            starts_in_seconds=rounded(waiting.starts_in_seconds, 1),
        )  # fmt: skip


class JobDocument(JobFacts):
    """A job in full, as `onboard jobs show --json` prints it; a result adds its own members (`JobResult`)."""

    model_config = ConfigDict(extra="allow")

    spec: dict[str, Any]
    events: tuple[JobEventDocument, ...]
    waiting: WaitingDocument | None
    running: RunningDocument | None


class JobLog(Document):
    """A part of a job's log. `next` is the cursor of the following part; `more` is true if there is already one."""

    job: str
    state: JobState
    events: tuple[LoggedEvent, ...]
    lines: Annotated[list[dict[str, Any]], Field(description="Log lines of its worker about it, as JSON.")]
    log: Annotated[str | None, Field(description="The log file; null if there is none.")]
    next: str
    more: bool


class Retry(BaseModel):
    """How to repeat a job."""

    model_config = ConfigDict(extra="forbid")

    time_limit: Annotated[
        float | None, Field(gt=0, allow_inf_nan=False, description="Seconds; null keeps the current limit.")
    ] = None
