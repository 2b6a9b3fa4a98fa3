"""The plan of a worker process, passed to its pool child when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from onboard.domain.job import HEARTBEAT_SECONDS, LEASE_SECONDS
from onboard.jobs.doorbell import DEFAULT_QUEUE
from onboard.settings import Settings

RECONCILE_SECONDS: Final = 3.0  # a lost job runs again within its lease and 5 seconds
DEAF_SECONDS: Final = 10.0  # three rounds of the reconciler, each with a bell
DRAIN_SECONDS: Final = 25.0  # less than the 30 s that Kubernetes waits between SIGTERM and SIGKILL


@dataclass(frozen=True)
class WorkerPlan:
    """One worker: a Celery parent with one pool child, for one device.

    Args:
        device: auto, cpu, cuda or cuda:N.
        pipeline: module with `run(job, services, progress)` and `preload(services)`.
        idle_exit_seconds: it exits after this time without work; None means never.
        lease_seconds: a child that does not respond for this long loses its job.
        heartbeat_seconds: interval of the heartbeats of child and parent.
        cancel_seconds: how long a cancelled job may continue before its process is killed.
        reconcile_seconds: how often the reconciler looks for forgotten jobs.
        deaf_seconds: how long jobs may wait although this worker is free and rung for, before it restarts its consumer.
        drain_seconds: how long a stopping worker waits for its job before it hands it back to the queue.
        alive_file: touched while the upkeep goes round and the child's heart beats, for a health check that costs
            nothing; None means no file.
        pulse: descriptor of the memory in which the child says that it lives; None where no parent listens.
        stderr: descriptor of the parent's standard error, which the child takes over.
        is_program: whether this process was started as a worker, and can be started again as it was.
    """

    settings: Settings
    name: str
    queues: tuple[str, ...] = (DEFAULT_QUEUE,)
    device: str = "auto"
    pipeline: str = "onboard.pipeline.run"
    idle_exit_seconds: float | None = None
    lease_seconds: float = LEASE_SECONDS
    heartbeat_seconds: float = HEARTBEAT_SECONDS
    cancel_seconds: float = HEARTBEAT_SECONDS
    reconcile_seconds: float = RECONCILE_SECONDS
    deaf_seconds: float = DEAF_SECONDS
    drain_seconds: float = DRAIN_SECONDS
    alive_file: Path | None = None
    pulse: int | None = None
    stderr: int | None = None
    is_program: bool = False
