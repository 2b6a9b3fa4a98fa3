"""Queues, workers and the health of the service."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from onboard.contract.document import Document
from onboard.contract.jobs import Name


class QueueDocument(Document):
    """A queue: what waits and runs, who serves it, and what ended lately."""

    queue: str
    paused: bool
    queued: int
    delayed: int
    running: int
    lost: int
    oldest_queued_seconds: float | None
    oldest_running_seconds: float | None
    live_workers: int
    unserved: bool
    recent: dict[str, Any]


class QueueList(Document):
    """All queues at one moment."""

    at: str
    queues: tuple[QueueDocument, ...]


class OpenJobs(Document):
    """What runs and what waits at one moment; `queued_in_all` counts those that are not listed, too."""

    at: str
    running: list[dict[str, Any]]
    queued: list[dict[str, Any]]
    queued_in_all: int


class QueueChoice(BaseModel, extra="forbid"):
    """Which queue is meant."""

    queue: Annotated[Name, Field(description="Name of a queue.")] = "default"


class QueuePaused(Document):
    """Whether a queue is paused."""

    queue: str
    paused: bool
    warning: str | None = None


class WorkerDocument(Document, extra="allow"):
    """A worker and what it is doing."""

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


class WorkerList(Document):
    """All workers at one moment."""

    at: str
    workers: tuple[WorkerDocument, ...]


class WorkerDraining(Document):
    """A worker that finishes its job and leaves."""

    worker: str
    state: str


class Health(Document):
    """That the service answers."""

    status: str
