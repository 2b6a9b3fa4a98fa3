"""The tables. Typed columns, no relationships; every `*_at` is epoch seconds by the database's clock."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    JSON,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from onboard.registry import (  # noqa: F401 - they declare the rest of the tables
    access_tables,
    annotation_tables,
    drift_tables,
    feature_tables,
    prior_tables,
    quota_tables,
    schema_tables,
    webhook_tables,
)
from onboard.registry.declared import BigNumber, partial_index
from onboard.registry.declared import Table as Table  # exported with all tables declared

# Sort keys of jobs. Open jobs count as ending in the far future, so that their positions are stable. A retry changes
# the due time; a job that was delayed after its first start was due at submission.
WAIT_OF_JOB: Final = (
    "(COALESCE(started_at, finished_at, 1e12) - "
    "CASE WHEN not_before_at > started_at THEN created_at ELSE not_before_at END)"
)
RUN_OF_JOB: Final = "(COALESCE(COALESCE(finished_at, 1e12) - started_at, -1.0))"  # jobs that never started come first


OF_EXPRESSIONS: Final = ("ix_jobs_run", "ix_jobs_wait")
"""Indexes that Alembic cannot compare, because databases rewrite or omit their expressions."""


class ArtifactRow(Table):
    """Bytes in the artifact store. The row is written before the bytes."""

    __tablename__ = "artifacts"
    digest: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    size_bytes: Mapped[int] = mapped_column(BigNumber)
    created_at: Mapped[float]


class BaseRow(Table):
    """A registered base; `head` is the hypernetwork version that new tasks are learned with."""

    __tablename__ = "bases"
    digest: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(index=True)
    location: Mapped[str] = mapped_column(Text)
    backbone_digest: Mapped[str]
    document: Mapped[dict[str, Any]]
    head: Mapped[int]
    created_at: Mapped[float]


class HypernetworkRow(Table):
    """A hypernetwork version of a base. The row of a collected one remains, without an artifact."""

    __tablename__ = "hypernetwork_versions"
    base_digest: Mapped[str] = mapped_column(ForeignKey("bases.digest"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    artifact: Mapped[str | None] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    digest: Mapped[str]
    parent: Mapped[int | None]
    job: Mapped[str | None] = mapped_column(ForeignKey("jobs.id"), unique=True)
    metrics: Mapped[dict[str, Any]]
    created_at: Mapped[float]
    retired_at: Mapped[float | None]  # when it last stopped being the head
    collected_at: Mapped[float | None]
    unlearning: Mapped[str | None]  # the deleted task that it descends from; it never becomes the head again


class TaskRow(Table):
    """A task by its name, with its current label set. The row of a deleted one remains, without content."""

    __tablename__ = "tasks"
    name: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    labels: Mapped[list[Any]]
    words: Mapped[list[Any]]
    low: Mapped[float | None]
    high: Mapped[float | None]
    source: Mapped[bool]
    last_version: Mapped[int]  # the last assigned number; numbers of deleted versions are not reused
    created_at: Mapped[float]
    deleted_at: Mapped[float | None]


class SnapshotRow(Table):
    """A stored, immutable dataset."""

    __tablename__ = "snapshots"
    digest: Mapped[str] = mapped_column(primary_key=True)
    artifact: Mapped[str] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    row_hashes: Mapped[str] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    kind: Mapped[str]
    labels: Mapped[list[Any]]
    rows: Mapped[dict[str, Any]]
    name: Mapped[str]
    created_at: Mapped[float]


class JobRow(Table):
    """A job. The row is the truth; the broker message only wakes a worker."""

    __tablename__ = "jobs"
    number: Mapped[int] = mapped_column(BigNumber, primary_key=True)  # order of submission
    id: Mapped[str] = mapped_column(unique=True)
    key: Mapped[str | None] = mapped_column(unique=True)
    spec: Mapped[dict[str, Any]]
    task: Mapped[str]
    state: Mapped[str]
    queue: Mapped[str]
    priority: Mapped[int] = mapped_column()
    turn: Mapped[int] = mapped_column(BigNumber, server_default="0")  # order among jobs of one priority; see `turns`
    attempt: Mapped[int]
    max_attempts: Mapped[int]
    cancel_requested: Mapped[bool]
    owner: Mapped[str | None]
    stage: Mapped[str | None]
    worker: Mapped[str | None]
    worker_pid: Mapped[int | None]
    created_at: Mapped[float]
    not_before_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]
    lease_expires_at: Mapped[float | None]
    time_limit_seconds: Mapped[float | None]  # of one attempt, as submitted
    claimed_at: Mapped[float | None]  # by the current attempt
    deadline_at: Mapped[float | None]  # of the current attempt
    needs_release: Mapped[int | None]  # oldest release that can run it; older workers do not claim it
    passed_by: Mapped[str | None]  # workers that passed it on, separated by line feeds
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    __table_args__ = (
        CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'dead')", name="known_state"
        ),
        # for claims, most urgent first, and for counts of open jobs
        partial_index(
            "ix_jobs_open", "queue", priority.desc(), "turn", "number", "state", "not_before_at", "started_at",
            where="state IN ('queued', 'running')",
        ),
        # the last turn among an owner's waiting jobs
        partial_index("ix_jobs_turn", "queue", "owner", "priority", "turn", where="state = 'queued'"),
        # how many open jobs an owner has
        partial_index("ix_jobs_owner", "owner", "state", where="state IN ('queued', 'running')"),
        # recently finished jobs; covers all columns of the statistics, to avoid reading the wide rows
        partial_index(
            "ix_jobs_ended", "finished_at", "queue", "state", "attempt", "created_at", "not_before_at", "started_at",
            where="finished_at IS NOT NULL",
        ),
        # queried by each worker about its job every two seconds
        partial_index("ix_jobs_running", "worker", where="state = 'running'"),
        # jobs that a worker passed on and may have to run because no other worker is left
        partial_index("ix_jobs_passed", "queue", where="passed_by IS NOT NULL"),
        Index("ix_jobs_queue_state", "queue", "state"),  # counts by state, for dashboards
        # pages of the job list, in each order
        Index("ix_jobs_task", "task", "number"),
        Index("ix_jobs_wait", text(WAIT_OF_JOB), "number"),
        Index("ix_jobs_run", text(RUN_OF_JOB), "number"),
    )  # fmt: skip


class JobEventRow(Table):
    """A line of a job's log. Ids are never reused, even after the newest rows are deleted."""

    __tablename__ = "job_events"
    id: Mapped[int] = mapped_column(BigNumber, primary_key=True)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    attempt: Mapped[int]
    at: Mapped[float]
    kind: Mapped[str]
    stage: Mapped[str | None]
    message: Mapped[str] = mapped_column(Text)
    seconds: Mapped[float | None]
    numbers: Mapped[dict[str, Any]]
    __table_args__ = (Index("ix_job_events_job_id", "job", "id"), {"sqlite_autoincrement": True})


class JobShardRow(Table):
    """A part of a job that predicts files. Its claims are fenced by its attempt, like those of a job."""

    __tablename__ = "job_shards"
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    rows: Mapped[int]
    attempt: Mapped[int]
    max_attempts: Mapped[int]
    worker: Mapped[str | None]
    worker_pid: Mapped[int | None]
    lease_expires_at: Mapped[float | None]  # null unless claimed
    finished_at: Mapped[float | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    __table_args__ = (
        # for claims, independent of the number of finished shards
        partial_index(
            "ix_job_shards_open", "job", "number", "lease_expires_at", "attempt", "max_attempts",
            where="finished_at IS NULL",
        ),
        partial_index("ix_job_shards_held", "worker", where="lease_expires_at IS NOT NULL"),
    )  # fmt: skip


class JobTransitionRow(Table):
    """How many jobs of a queue changed from one state to another, counted from events. Kept after jobs are deleted.

    `up_to_seconds` is the upper edge of a histogram bucket for the time in the previous state. `newest` is the last
    event that was counted here.
    """

    __tablename__ = "job_transitions"
    previous: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str] = mapped_column(primary_key=True)
    queue: Mapped[str] = mapped_column(primary_key=True)
    up_to_seconds: Mapped[float] = mapped_column(primary_key=True)
    count: Mapped[int] = mapped_column(BigNumber)
    seconds: Mapped[float]
    newest: Mapped[int] = mapped_column(BigNumber)


class StageOutputRow(Table):
    """The output of a finished stage, from which a restart resumes. The key is a digest of everything it depends on."""

    __tablename__ = "stage_outputs"
    key: Mapped[str] = mapped_column(primary_key=True)
    job: Mapped[str] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"), index=True)
    stage: Mapped[str]
    artifact: Mapped[str] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    created_at: Mapped[float]


class EmbeddingVersionRow(Table):
    """An immutable published version of a task. A job has at most one provisional and one final version."""

    __tablename__ = "embedding_versions"
    task: Mapped[str] = mapped_column(ForeignKey("tasks.name"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    job: Mapped[str | None] = mapped_column(ForeignKey("jobs.id"))
    kind: Mapped[str]
    method: Mapped[str]
    artifact: Mapped[str] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    embedding_digest: Mapped[str]
    backbone_digest: Mapped[str]
    base_digest: Mapped[str]
    hypernetwork_version: Mapped[int]
    dataset_digest: Mapped[str]
    parent: Mapped[str]
    task_kind: Mapped[str]
    labels: Mapped[list[Any]]
    words: Mapped[list[Any]]
    low: Mapped[float | None]
    high: Mapped[float | None]
    pairs: Mapped[bool | None]  # null in versions of earlier releases
    readout: Mapped[str | None] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    # null in versions of earlier releases
    lesson: Mapped[str | None] = mapped_column(ForeignKey("artifacts.digest"), index=True)
    prior_version: Mapped[int | None]  # the prior that its readout was fitted with
    prior_digest: Mapped[str | None]
    temperature: Mapped[float] = mapped_column(server_default="1")
    stored_bytes: Mapped[int | None] = mapped_column(BigNumber)  # of both files
    seeds: Mapped[list[Any]]
    code_version: Mapped[str]
    metrics: Mapped[dict[str, Any]]
    weak: Mapped[bool]
    fingerprint: Mapped[str | None]  # Base64 of float32, because backups store rows as JSON
    mixed_from: Mapped[dict[str, Any] | None]
    learned_under: Mapped[int | None]  # only of a carried version
    held_out: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    out_of_fold: Mapped[str | None]  # Base64 of safetensors, at most 22 KB for 64 labels
    provisional: Mapped[bool] = mapped_column(server_default=false())  # its job may still publish a better one
    unlearning: Mapped[str | None]  # the deleted task that it descends from; nothing new starts from it
    change: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))  # the change to the task's dataset
    created_at: Mapped[float]
    __table_args__ = (
        ForeignKeyConstraint(
            ["base_digest", "hypernetwork_version"],
            ["hypernetwork_versions.base_digest", "hypernetwork_versions.version"],
        ),
        Index("ix_embedding_versions_base", "base_digest", "hypernetwork_version"),
        UniqueConstraint("job", "provisional"),
    )


class AliasRow(Table):
    """A movable name of a version; `latest` is one of them."""

    __tablename__ = "aliases"
    task: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int]
    names: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))  # pairs of a label and its name
    updated_at: Mapped[float]
    canary: Mapped[int | None]  # a second version, which answers a share of the texts
    share: Mapped[float | None]
    canary_at: Mapped[float | None]  # when the canary started
    __table_args__ = (
        ForeignKeyConstraint(["task", "version"], ["embedding_versions.task", "embedding_versions.version"]),
        ForeignKeyConstraint(["task", "canary"], ["embedding_versions.task", "embedding_versions.version"]),
    )


class AliasMoveRow(Table):
    """One move of an alias."""

    __tablename__ = "alias_history"
    id: Mapped[int] = mapped_column(BigNumber, primary_key=True)
    task: Mapped[str]
    alias: Mapped[str]
    version: Mapped[int]
    previous: Mapped[int | None]
    at: Mapped[float]
    actor: Mapped[str | None]
    reason: Mapped[str] = mapped_column(Text)
    names: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    canary: Mapped[int | None]
    share: Mapped[float | None]
    __table_args__ = (Index("ix_alias_history_alias", "task", "alias", "id"),)


class WorkerRow(Table):
    """A worker process and its heartbeat."""

    __tablename__ = "workers"
    name: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    queues: Mapped[list[Any]]
    host: Mapped[str]
    pid: Mapped[int | None]
    device: Mapped[str]
    gpu_uuid: Mapped[str | None]
    facts: Mapped[dict[str, Any]]
    started_at: Mapped[float]
    heartbeat_at: Mapped[float]


class QueueRow(Table):
    """A queue that was paused or resumed at least once. A queue without a row is not paused."""

    __tablename__ = "queues"
    name: Mapped[str] = mapped_column(primary_key=True)
    paused: Mapped[bool]
    updated_at: Mapped[float]


class LeaseRow(Table):
    """A named lease with one holder at a time, until it expires (the reconciler, the output folder of a job)."""

    __tablename__ = "leases"
    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    expires_at: Mapped[float]
