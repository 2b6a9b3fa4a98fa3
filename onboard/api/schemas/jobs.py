"""Jobs, as requests and as answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from onboard.domain.job import JobState, KindChoice, ProbeStrategy, TuneHypernetwork

NAME = r"^[a-z0-9][a-z0-9_-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
Text = Annotated[str, Field(max_length=200)]


class DatasetForm(BaseModel):
    """Fields of an upload, named like the flags of `onboard check`.

    The files are dataset, validation, test and unlabelled.
    """

    model_config = ConfigDict(extra="forbid")

    task: Annotated[Name | None, Field(description="Name of the task; default: the file's stem.")] = None
    kind: Annotated[KindChoice, Field(description="What the labels are taken for.")] = "auto"
    labels: Annotated[str, Field(max_length=65_536, description="The label set, A,B,… as one line of CSV.")] = ""
    text_field: Annotated[list[Text], Field(max_length=2, description="Field of the text; twice for pairs.")] = []
    label_field: Annotated[Text | None, Field(description="Field of the label.")] = None
    shots: Annotated[int | None, Field(ge=1, le=2**31, description="Training rows in total, drawn balanced.")] = None
    seed: Annotated[int, Field(ge=0, lt=2**31, description="Seed of every random draw.")] = 0


class JobForm(DatasetForm):
    """Fields of a submission, named like the flags of `onboard submit`."""

    init: Annotated[str, Field(max_length=200, description="auto, random, mean, fingerprint or TASK[@REF].")] = "auto"
    probe: Annotated[ProbeStrategy, Field(description="How auto chooses; exhaustive: all on all rows.")] = "race"
    tune_hypernetwork: TuneHypernetwork = "auto"
    method: Annotated[Text, Field(description="Fine-tuning method; the base's own if left out.")] = ""
    metric: Annotated[Text, Field(description="Metric that decides.")] = ""
    base: Annotated[Name | None, Field(description="Name of the base; default: the deployment's.")] = None
    new_labels: Annotated[bool, Field(description="Let an existing task have another label set.")] = False
    queue: Annotated[Name, Field(description="Queue that the job waits in.")] = "default"
    priority: Annotated[int, Field(ge=-(2**31), lt=2**31, description="More urgent is higher.")] = 0
    time_limit: Annotated[
        float | None, Field(gt=0, allow_inf_nan=False, description="Seconds after which an attempt fails.")
    ] = None


class CheckDocument(BaseModel):
    """What `onboard check --json` prints."""

    model_config = ConfigDict(extra="allow")

    task: str
    kind: Literal["classification", "regression"]
    rows: dict[str, int]
    warnings: list[dict[str, Any]]
    estimated_seconds: int


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
