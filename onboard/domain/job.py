"""A job: its request, its states, and its results.

queued ──> running ──> succeeded
  │  ^        ├──────> failed ──────┐
  │  │        ├──────> dead ────────┤ retry
  │  └────────┤ lease expired,      │
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

from onboard.domain.init import INIT_VERSION, Init
from onboard.domain.methods import FROM_ADAPTERS, WITHOUT_EMBEDDING, method_settings
from onboard.domain.release import release_number
from onboard.errors import ConflictError, InputError, JobFailedError

LEASE_SECONDS: Final = 60.0  # a worker without a heartbeat for this long loses its job
HEARTBEAT_SECONDS: Final = 15.0  # interval of a worker's heartbeat, which extends its lease
MAX_ATTEMPTS: Final = 3  # claims before a job is dead
BULK: Final = "bulk"  # the option of a job's spec that marks a job that answers files
EVENTS_AT_ONCE: Final = 1000  # events per reading; fewer mean that there are no more

FIRST_RELEASE: Final = "0.1.0"
SINCE: Final[dict[str, str]] = {}
"""The release that introduced a field of a job's spec, an option, or a value of a field (`method=NAME`), by its name.

Those of the first release are not listed. Workers of earlier releases leave jobs that use the others to newer workers.
"""

TuneHypernetwork = Literal["never", "auto", "always"]
KindChoice = Literal["auto", "classification", "regression", "multilabel"]
ProbeStrategy = Literal["race", "exhaustive"]
ReadoutChoice = Literal["never", "auto"]
UnknownLabels = Literal["refuse", "drop"]


class JobState(StrEnum):
    """The state of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DEAD = "dead"

    @property
    def finished(self) -> bool:
        """Whether the job has ended; only a retry changes that."""
        return self not in (JobState.QUEUED, JobState.RUNNING)


class Stage(StrEnum):
    """The stages of a running job, in order."""

    CHECK = "check"
    READOUT = "readout"  # of jobs that publish a provisional version
    PROBE = "probe"
    TRAIN = "train"
    TUNE = "tune"
    GUARD = "guard"
    CHOOSE = "choose"
    EVALUATE = "evaluate"
    PUBLISH = "publish"
    PREDICT = "predict"  # of jobs that answer files, after check; they have no other stages

    @classmethod
    def known(cls, name: str | None) -> Stage | None:
        """Return the stage with this name; None without a name, and for a stage of a later release."""
        return next((stage for stage in cls if stage == name), None)


LEARNING_STAGES: Final = tuple(stage for stage in Stage if stage is not Stage.PREDICT)
BULK_STAGES: Final = (Stage.CHECK, Stage.PREDICT)


TRANSITIONS: Final[Mapping[JobState, frozenset[JobState]]] = {
    JobState.QUEUED: frozenset({JobState.RUNNING, JobState.CANCELLED}),
    # running -> running: another worker takes over after the lease has expired
    JobState.RUNNING: frozenset(JobState),
    JobState.SUCCEEDED: frozenset(),
    JobState.FAILED: frozenset({JobState.QUEUED}),
    JobState.CANCELLED: frozenset({JobState.QUEUED}),
    JobState.DEAD: frozenset({JobState.QUEUED}),
}


def sources_of(target: JobState) -> frozenset[JobState]:
    """Return the states from which a job may enter `target`; the registry's updates check them in their
    WHERE clause.
    """
    return frozenset(state for state, targets in TRANSITIONS.items() if target in targets)


def require_transition(job_id: str, present: JobState, target: JobState) -> None:
    """Raise ConflictError if a job in `present` must not become `target`."""
    if target not in TRANSITIONS[present]:
        raise ConflictError("job-state-forbids", job=job_id, state=present.value, wanted=target.value)


def require_time_limit(seconds: float | None) -> None:
    """Raise InputError unless a time limit is None or a positive number of seconds."""
    if seconds is not None and not (seconds > 0 and math.isfinite(seconds)):
        raise InputError("time-limit-invalid", seconds=seconds)


def job_failure(
    job_id: str, state: JobState, error: Mapping[str, Any] | None, kind: type[JobFailedError] = JobFailedError
) -> JobFailedError:
    """Return the error for a job that ended without success.

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
    """Return a new job id: 12 hexadecimal characters."""
    return secrets.token_hex(6)


@dataclass(frozen=True, slots=True)
class JobSpec:
    """The request: every option of `submit`, JSON-compatible.

    Args:
        dataset: digest of the snapshot of its rows ("sha256:…").
        init: "auto" (probe), "random", "mean", "fingerprint", an anchor, or an embedding's reference ("sst2@v1").
        tune_hypernetwork: never, auto or always.
        method: name of the fine-tuning method (`onboard.domain.methods`); empty means the base's own.
        kind: how labels are interpreted.
        metric: name of the deciding metric; empty means the kind's default.
        shots: total number of training rows; None means all.
        base: name, folder or digest of the base.
        new_labels: whether to allow a label set that differs from the task's.
        options: all other options. `probe` is the probe's strategy if it is not a race. `readout` is "never" to disable
            it. `fast` requests only the first version. `method_setting` lists the method's settings as NAME=VALUE, and
            `label_description` the meanings of labels as LABEL=TEXT. `bulk` is the request of a job that answers files,
            which has no dataset. `change` describes how the dataset was made from an earlier one
            (`onboard.contract.changes.TaskChange`). `replaces` lists the versions that a job rebuilds.
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
        """Whether it answers files instead of learning."""
        return BULK in self.options

    @property
    def readout(self) -> ReadoutChoice:
        """Whether a readout may be used."""
        return "never" if self.options.get("readout") == "never" else "auto"

    @property
    def fast(self) -> bool:
        """Whether only its first version, the readout alone, is requested."""
        return bool(self.options.get("fast"))

    @property
    def provisional(self) -> bool:
        """Whether it fits a readout before it learns anything else, and publishes it as provisional.

        A job that rebuilds versions does not publish it, unless it turns out to be the final version.
        """
        return self.fast or not (self.without_embedding or self.readout == "never")

    @property
    def replaces(self) -> tuple[str, ...]:
        """References of the versions that it rebuilds without a deleted task; its version takes their place."""
        return tuple(self.options.get("replaces", ()))

    @property
    def start(self) -> Init:
        """The value of `init`, with the version that it named at submission."""
        return Init.parse(self.init, self.options.get(INIT_VERSION))

    def pinned_to(self, version: str | None) -> JobSpec:
        """Return the spec with the version that `init` names now; without one for None."""
        options = {name: value for name, value in self.options.items() if name != INIT_VERSION}
        return replace(self, options=options if version is None else {**options, INIT_VERSION: version})

    @property
    def change(self) -> Mapping[str, Any] | None:
        """How its dataset was made from the task's earlier one; None if it was submitted as a whole."""
        change: Mapping[str, Any] | None = self.options.get("change")
        return change

    @property
    def without_embedding(self) -> bool:
        """Whether its version has task-specific weights or a readout alone: no hypernetwork is involved."""
        return self.method in WITHOUT_EMBEDDING

    @property
    def starts_from_adapters(self) -> bool:
        """Whether task-specific weights start at adapters that are generated for a task's embedding."""
        return self.method == FROM_ADAPTERS and self.start.is_given

    def settings_on(self, reduction_factor: int) -> dict[str, Any]:
        """Return settings of the method on a base with this reduction factor, which determines the size of generated
        adapters.
        """
        own = {"reduction_factor": reduction_factor} if self.starts_from_adapters else {}
        return {**own, **self.method_settings}

    @property
    def method_settings(self) -> dict[str, Any]:
        """Settings of the method, by name. Raises InputError: one is invalid."""
        return method_settings(self.options.get("method_setting", ()))

    @property
    def needs_release(self) -> int:
        """Number of the oldest release (`onboard.domain.release`) whose workers understand everything in it."""
        chosen = {f"{declared.name}={getattr(self, declared.name)}" for declared in fields(self)}
        used = SINCE.keys() & {*_later_than_first(self), *self.options, *chosen}
        return max(release_number(release) for release in (FIRST_RELEASE, *(SINCE[name] for name in used)))

    def to_json(self) -> dict[str, Any]:
        """Return the spec as a JSON-compatible document, without unused fields that earlier releases do not know."""
        unused = SINCE.keys() - _later_than_first(self)
        return {name: value for name, value in asdict(self).items() if name not in unused}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> JobSpec:
        """Read the output of `to_json`. Unknown fields raise InputError, because they were requested."""
        unknown = set(document) - {declared.name for declared in fields(cls)}
        if unknown:
            raise InputError("job-fields-unknown", fields=sorted(unknown))
        return cls(**document)

    @classmethod
    def known_part(cls, document: Mapping[str, Any]) -> JobSpec:
        """Read the output of `to_json` without unknown fields, to list jobs of a newer release."""
        known = {declared.name for declared in fields(cls)}
        return cls(**{name: value for name, value in document.items() if name in known})


def _later_than_first(spec: JobSpec) -> set[str]:
    """Return the fields that are not of the first release and not at their default."""
    later = [declared for declared in fields(spec) if declared.name in SINCE]
    return {declared.name for declared in later if getattr(spec, declared.name) != declared.default}


@dataclass(frozen=True, slots=True)
class Job:
    """A job in the registry.

    Args:
        attempt: number of claims; the fencing token of the worker that runs it.
        max_attempts: it is dead after this many attempts.
        key: the submitter's idempotency key, if any.
        stage: the last stage that was entered.
        worker_pid: process of the last attempt on that worker's machine.
        not_before_at: it is not claimed earlier (back-off).
        time_limit_seconds: limit of an attempt; None uses the worker's default, if any.
        claimed_at: when the current (or last) attempt began.
        deadline_at: when its time limit is reached.
        needs_release: number of the oldest release (`onboard.domain.release`) that can run it.
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
        """Number of this attempt, without those handed back and those before `jobs retry`."""
        return max(1, MAX_ATTEMPTS - (self.max_attempts - self.attempt))

    def waited_seconds(self, now: float) -> float:
        """Return how long it waited until the first claim or until it was given up; if it waits, until now."""
        put_off = self.started_at is not None and self.not_before_at > self.started_at
        due = self.created_at if put_off else self.not_before_at
        return max(0.0, (self.started_at or self.finished_at or now) - due)

    def ran_seconds(self, now: float) -> float | None:
        """Return the time from its first start to its end, or until now; None if it never started."""
        return None if self.started_at is None else max(0.0, (self.finished_at or now) - self.started_at)

    @property
    def attempts_used_up(self) -> bool:
        """Whether no further claim is allowed."""
        return self.attempt >= self.max_attempts


STEPS_BETWEEN = 10  # steps of a training between two notes of its loss
EventKind = Literal["state", "stage_started", "stage_finished", "note"]


@dataclass(frozen=True, slots=True)
class JobEvent:
    """An event in a job's log.

    Args:
        id: increases within a job and over all jobs; pass it as "since" to continue reading.
        kind: a change of state, the start or end of a stage, or a note.
        seconds: duration of a finished stage.
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
