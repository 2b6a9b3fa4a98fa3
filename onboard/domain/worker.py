"""Workers and queues as the operators see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from onboard.domain.moment import to_iso

STARTING_SECONDS: Final = 60.0  # a worker that was just spawned counts as live for so long without a heartbeat


class WorkerState(StrEnum):
    """Where a worker stands."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A worker process as the registry knows it.

    Args:
        live: whether its heartbeat is fresh by the database's clock.
        facts: JSON-compatible facts about its machine (GPU memory, resident bytes, versions).
        job: id of the job it runs, if any.
    """

    name: str
    state: WorkerState
    queues: tuple[str, ...]
    host: str
    pid: int | None
    device: str
    started_at: float
    heartbeat_at: float
    live: bool
    job: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The worker as a JSON-compatible document; times are ISO 8601 in UTC."""
        return {
            "worker": self.name,
            "state": self.state.value if self.live or self.state is WorkerState.STOPPED else "lost",
            "queues": list(self.queues),
            "host": self.host,
            "pid": self.pid,
            "device": self.device,
            "job": self.job,
            "started_at": to_iso(self.started_at),
            "heartbeat_at": to_iso(self.heartbeat_at),
            "facts": self.facts,
        }


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """A queue: how many jobs stand where, and since when the oldest waits."""

    name: str
    paused: bool
    queued: int
    running: int
    oldest_queued_seconds: float | None

    def to_json(self) -> dict[str, Any]:
        """The queue as a JSON-compatible document."""
        return {
            "queue": self.name,
            "paused": self.paused,
            "queued": self.queued,
            "running": self.running,
            "oldest_queued_seconds": self.oldest_queued_seconds,
        }
