"""A job: what was asked, the states it passes through, and what it leaves behind.

queued ──> running ──> succeeded
  │  ^        ├──────> failed ──────┐
  │  │        ├──────> dead ────────┤ retry
  │  └────────┤ lease ran out,      │
  │  ^        │ drained, try later  │
  │  └────────│─────────────────────┤
  └───────────┴──────> cancelled ───┘
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, Literal

from onboard.domain.change import ChangeJson
from onboard.domain.documents import document_of
from onboard.domain.init import INIT_VERSION, Init
from onboard.domain.methods import FROM_ADAPTERS, WITHOUT_EMBEDDING, method_settings
from onboard.domain.moment import to_iso
from onboard.errors import ConflictError, InputError, JobFailedError

LEASE_SECONDS: Final = 60.0  # a worker that stays silent for so long has lost its job
HEARTBEAT_SECONDS: Final = 15.0  # how often a worker extends its lease
MAX_ATTEMPTS: Final = 3  # claims before a job is dead
BULK: Final = "bulk"  # the option of a job's spec that makes it one that answers files
EVENTS_AT_ONCE: Final = 1000  # of a job's log; fewer mean that there are no more

TuneHypernetwork = Literal["never", "auto", "always"]
KindChoice = Literal["auto", "classification", "regression", "multilabel"]
ProbeStrategy = Literal["race", "exhaustive"]
ReadoutChoice = Literal["never", "auto"]
UnknownLabels = Literal["refuse", "drop"]


class JobState(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"

    @property
    def finished(self) -> bool:
        """Whether nothing more happens unless someone retries."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


class Stage(StrEnum):
    """The stages of a running job, in their order."""

    CHECK = "check"
    READOUT = "readout"  # of jobs that publish a provisional version
    PROBE = "probe"
    TRAIN = "train"
    TUNE = "tune"
    GUARD = "guard"
    CHOOSE = "choose"
    EVALUATE = "evaluate"
    PUBLISH = "publish"
    PREDICT = "predict"  # of jobs that answer files, after check; they have no other


LEARNING_STAGES: Final = tuple(stage for stage in Stage if stage is not Stage.PREDICT)
BULK_STAGES: Final = (Stage.CHECK, Stage.PREDICT)


TRANSITIONS: Final[Mapping[JobState, frozenset[JobState]]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.CANCELLED}),
    # running -> running is another worker that takes over after the lease ran out
    JobState.RUNNING: frozenset(JobState),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset({JobState.QUEUED}),
    JobState.CANCELLED: frozenset({JobState.QUEUED}),
    JobState.DEAD: frozenset({JobState.QUEUED}),
}


def sources_of(target: JobState) -> frozenset[JobState]:
    """The states from which a job may enter `target`; the registry's updates carry them in their WHERE."""
    return frozenset(state for state, targets in TRANSITIONS.items() if target in targets)


def require_transition(job_id: str, present: JobState, target: JobState) -> None:
    """Raise ConflictError when a job in `present` may not become `target`."""
    if target not in TRANSITIONS[present]:
        raise ConflictError("job-state-forbids", job=job_id, state=present.value, wanted=target.value)


def require_time_limit(seconds: float | None) -> None:
    """Raise InputError unless a time limit is None or a positive number of seconds."""
    if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
        raise InputError("time-limit-invalid", seconds=seconds)


def job_failure(
    job_id: str, state: JobState, error: Mapping[str, Any] | None, kind: type[JobFailedError] = JobFailedError
) -> JobFailedError:
    """The error for a job that ended and did not succeed.

    Args:
        error: its error document, if it has one.
    """
    error = error or {}
    return kind(
        f"Job {job_id} {state.value}: {error.get('message', 'no reason was given')}",
        error.get("remedy") or f"onboard jobs logs {job_id}, then: onboard jobs retry {job_id}",
        job=job_id,
        state=state.value,
    )


def new_job_id() -> str:
    """A fresh job id: 12 hexadecimal characters."""
    return secrets.token_hex(6)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What was asked: every flag of `submit`, JSON-compatible.

    Args:
        task: name of the task.
        dataset: digest of the snapshot of its rows ("sha256:…").
        init: "auto" (probe), "random", "mean", "fingerprint", an anchor, or an embedding's reference ("sst2@v1").
        tune_hypernetwork: never, auto or always.
        method: name of the fine-tuning method (`onboard.domain.methods`); empty means the base's own.
        kind: what the labels are taken for.
        metric: name of the deciding metric; empty means the kind's default.
        shots: rows in total that are trained on; None means all.
        seed: seed of every random draw of the job.
        base: name, folder or digest of the base.
        new_labels: whether another label set than the task's present one is wanted.
        options: whatever else it takes; `probe` names the probe's strategy where it is not to race, `readout` is
            "never" where none is wanted, `fast` says that the first version is all that is wanted, `method_setting` has
            the method's settings as NAME=VALUE; `label_description` says what labels mean, as LABEL=TEXT; `bulk` says
            what a job that answers files reads, asks and writes: it has no dataset; `change` says how the dataset was
            made of an earlier one (`onboard.domain.change`).
    """

    task: str
    dataset: str
    init: str = "auto"
    tune_hypernetwork: TuneHypernetwork = "auto"
    method: str = ""
    kind: KindChoice = "auto"
    metric: str = ""
    shots: int | None = None
    seed: int = 0
    base: str = "mini"
    new_labels: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def is_bulk(self) -> bool:
        """Whether it answers files, instead of learning."""
        return BULK in self.options

    @property
    def readout(self) -> ReadoutChoice:
        """Whether a readout may answer beside what is trained."""
        return "never" if self.options.get("readout") == "never" else "auto"

    @property
    def fast(self) -> bool:
        """Whether its first version, the readout alone, is all that is wanted."""
        return bool(self.options.get("fast"))

    @property
    def provisional(self) -> bool:
        """Whether it publishes a readout alone before it has learned anything else.

        A job that rebuilds versions without a deleted task replaces them once.
        """
        return self.fast or not (self.without_embedding or self.readout == "never" or self.options.get("replaces"))

    @property
    def start(self) -> Init:
        """What `init` says, and the version that it named when the job was submitted."""
        return Init.parse(self.init, self.options.get(INIT_VERSION))

    def pinned_to(self, version: str | None) -> JobSpec:
        """The same with the version that `init` names now; without one for None."""
        options = {name: value for name, value in self.options.items() if name != INIT_VERSION}
        return replace(self, options=options if version is None else {**options, INIT_VERSION: version})

    @property
    def change(self) -> ChangeJson | None:
        """How its dataset was made of the task's earlier one; None where it was submitted as a whole."""
        change: ChangeJson | None = self.options.get("change")
        return change

    @property
    def without_embedding(self) -> bool:
        """Whether its version is of weights of its own, or of a readout alone: no hypernetwork has a part in it."""
        return self.method in WITHOUT_EMBEDDING

    @property
    def starts_from_adapters(self) -> bool:
        """Whether weights of the task's own start at what the embedding of a task's version generates."""
        return self.method == FROM_ADAPTERS and self.start.is_given

    def settings_on(self, reduction_factor: int) -> dict[str, Any]:
        """Settings of the method on a base whose adapters have this one: what starts at those has their size."""
        own = {"reduction_factor": reduction_factor} if self.starts_from_adapters else {}
        return {**own, **self.method_settings}

    @property
    def method_settings(self) -> dict[str, Any]:
        """Settings of the method, by name. Raises InputError: one is of another form."""
        return method_settings(self.options.get("method_setting", ()))

    def to_json(self) -> dict[str, Any]:
        """The spec as a JSON-compatible document."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> JobSpec:
        """Read what `to_json` wrote. Fields this code does not know raise InputError: they were asked for."""
        unknown = set(document) - {declared.name for declared in fields(cls)}
        if unknown:
            raise InputError("job-fields-unknown", fields=sorted(unknown))
        return cls(**document)

    @classmethod
    def known_part(cls, document: Mapping[str, Any]) -> JobSpec:
        """The same without the fields that this code does not know, so that it can list jobs of a newer program."""
        known = {declared.name for declared in fields(cls)}
        return cls(**{name: value for name, value in document.items() if name in known})


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the registry knows it.

    Args:
        attempt: how often it was claimed; the fencing token of the worker that runs it.
        max_attempts: it is dead when this many attempts have been used up.
        key: the submitter's idempotency key, if any.
        owner: who submitted it, for audit.
        stage: the last stage that was entered.
        worker: name of the worker of the last attempt.
        worker_pid: process of the last attempt on that worker's machine.
        not_before_at: it is not claimed earlier (back-off).
        time_limit_seconds: how long an attempt may take; None leaves it to the worker's default, if it has one.
        claimed_at: when the present (or last) attempt began.
        deadline_at: when its time is up.
        needs_release: number of the release (`onboard.domain.release`) that a worker needs at least.
        result: the result document of a succeeded job.
        error: the error document of a failed, cancelled or dead job, or of the last attempt.
    """

    id: str
    spec: JobSpec
    state: JobState
    queue: str
    priority: int
    attempt: int
    max_attempts: int
    cancel_requested: bool
    created_at: float
    not_before_at: float
    key: str | None = None
    owner: str | None = None
    stage: Stage | None = None
    worker: str | None = None
    worker_pid: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    lease_expires_at: float | None = None
    time_limit_seconds: float | None = None
    claimed_at: float | None = None
    deadline_at: float | None = None
    needs_release: int | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None

    @property
    def counted_attempt(self) -> int:
        """Which of its attempts this is: those handed back, and those before `jobs retry`, do not count."""
        return max(1, MAX_ATTEMPTS - (self.max_attempts - self.attempt))

    def waited_seconds(self, now: float) -> float:
        """How long it waited until a worker first took it, or it was given up; so far if it waits."""
        put_off = self.started_at is not None and self.not_before_at > self.started_at
        due = self.created_at if put_off else self.not_before_at
        return max(0.0, (self.started_at or self.finished_at or now) - due)

    def ran_seconds(self, now: float) -> float | None:
        """How long it took from its first start to its end, or so far; None if it never started."""
        return None if self.started_at is None else max(0.0, (self.finished_at or now) - self.started_at)

    @property
    def attempts_used_up(self) -> bool:
        """Whether no further claim is left."""
        return self.attempt >= self.max_attempts

    def to_json(self) -> dict[str, Any]:
        """The job as a JSON-compatible document; times are ISO 8601 in UTC."""
        return {
            "job": self.id,
            "task": self.spec.task,
            "state": self.state.value,
            "stage": self.stage.value if self.stage else None,
            "queue": self.queue,
            "priority": self.priority,
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "time_limit_seconds": self.time_limit_seconds,
            "cancel_requested": self.cancel_requested,
            "owner": self.owner,
            "worker": self.worker,
            "created_at": to_iso(self.created_at),
            "started_at": to_iso(self.started_at),
            "finished_at": to_iso(self.finished_at),
            "spec": self.spec.to_json(),
            "result": self.result,
            "error": self.error,
        }


STEPS_BETWEEN = 10  # steps of a training that pass between two notes of its loss
EventKind = Literal["state", "stage_started", "stage_finished", "note"]


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One line of a job's log.

    Args:
        id: grows within a job and over all jobs; "since" of the next reading.
        kind: a change of state, a stage that started or finished, or a note.
        seconds: how long a finished stage took.
        numbers: JSON-compatible facts (losses, rows, memory …).
    """

    id: int
    job: str
    attempt: int
    at: float
    kind: EventKind
    message: str
    stage: Stage | None = None
    seconds: float | None = None
    numbers: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON-compatible document; its time is ISO 8601 in UTC."""
        return document_of(self, stage=self.stage.value if self.stage else None)
