"""Jobs, as requests and as answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from onboard.domain.job import JobState
from onboard.domain.names import NAME_PATTERN

NAME: Final = NAME_PATTERN
Name = Annotated[str, Field(pattern=NAME)]


class CheckDocument(BaseModel):
    """What `onboard check --json` prints."""

    model_config = ConfigDict(extra="allow")

    task: str
    kind: Literal["classification", "regression", "multilabel"]
    rows: dict[str, int]
    warnings: list[dict[str, Any]]
    estimated_seconds: Annotated[int, Field(description="If the hypernetwork is not tuned.")]
    estimated_seconds_tuned: Annotated[int, Field(description="The same, if it is.")]
    estimated_seconds_first: Annotated[int, Field(description="Until the job has published a provisional version.")]
    estimate_basis: Annotated[str, Field(description="What the estimates rest on: the last jobs here, or a laptop.")]


class Accepted(BaseModel):
    """A queued job; `warning` says what may keep it waiting, `warnings` what the checks found in the dataset."""

    job: str
    state: JobState
    task: str
    warning: str | None = None
    warnings: list[dict[str, Any]] = []


class JobBrief(BaseModel):
    """A job of a list."""

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


class JobList(BaseModel):
    """A page of jobs, newest first."""

    jobs: list[JobBrief]
    next: Annotated[str | None, Field(description="Cursor of the next page; null on the last one.")]


class JobEventDocument(BaseModel):
    """One line of a job's log."""

    id: int
    job: str
    attempt: int
    at: str
    kind: Literal["state", "stage_started", "stage_finished", "note"]
    stage: str | None
    message: str
    seconds: float | None
    numbers: dict[str, Any]


class LoggedEvent(JobEventDocument):
    """The same with the worker of its attempt."""

    worker: str | None


class JobDocument(BaseModel):
    """A job in full, as `onboard jobs show --json` prints it; a result adds its own members."""

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
    events: list[JobEventDocument]
    waiting: dict[str, Any] | None
    running: dict[str, Any] | None


class JobLog(BaseModel):
    """A part of a job's log: `next` asks for what comes after it, `more` says that there is more already."""

    job: str
    state: JobState
    events: list[LoggedEvent]
    lines: Annotated[list[dict[str, Any]], Field(description="What its worker logged about it, as JSON lines.")]
    log: Annotated[str | None, Field(description="The file that the lines are of; null where there is none.")]
    next: str
    more: bool


class Retry(BaseModel):
    """How a job is to be tried again."""

    model_config = ConfigDict(extra="forbid")

    time_limit: Annotated[
        float | None, Field(gt=0, allow_inf_nan=False, description="Seconds; null keeps the limit it has.")
    ] = None
