"""Jobs in requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from onboard.contract.document import Document, Metrics, later
from onboard.domain.job import EventKind, JobState
from onboard.domain.names import NAME_PATTERN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onboard.domain.job import Job

NAME: Final = NAME_PATTERN
Name = Annotated[str, Field(pattern=NAME)]


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


class JobBrief(Document):
    """A job in a list."""

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


class JobDocument(Document):
    """The full document of a job, as printed by `onboard jobs show --json`; a job with a result has more members."""

    model_config = ConfigDict(extra="allow")

    job: str
    task: str
    state: JobState
    stage: str | None
    queue: str
    attempt: int
    owner: str | None
    created_at: str | None
    spec: dict[str, Any]
    error: dict[str, Any] | None
    events: tuple[JobEventDocument, ...]
    waiting: dict[str, Any] | None
    running: dict[str, Any] | None


class JobLog(Document):
    """A part of a job's log. `next` is the cursor of the following part; `more` is true if there is already one."""

    job: str
    state: JobState
    events: tuple[LoggedEvent, ...]
    lines: Annotated[list[dict[str, Any]], Field(description="What its worker logged about it, as JSON lines.")]
    log: Annotated[str | None, Field(description="The file that the lines are of; null where there is none.")]
    next: str
    more: bool


class Retry(BaseModel):
    """How to repeat a job."""

    model_config = ConfigDict(extra="forbid")

    time_limit: Annotated[
        float | None, Field(gt=0, allow_inf_nan=False, description="Seconds; null keeps the limit it has.")
    ] = None
