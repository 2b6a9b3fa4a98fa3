"""Workers and queues as the operators see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

STARTING_SECONDS: Final = 60.0  # a worker that was just spawned counts as live for so long without a heartbeat


class WorkerState(StrEnum):
    """Where a worker stands."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a worker cannot do its work: its machine lacks something, or something on it is broken.

    Args:
        stops: whether it takes no jobs until that is mended.
    """

    message: str
    remedy: str
    stops: bool

    def to_json(self) -> dict[str, Any]:
        """For the facts of its row."""
        return {"message": self.message, "remedy": self.remedy, "stops": self.stops}

    @classmethod
    def read(cls, document: Any) -> Self | None:
        """What `to_json` made; None for anything else."""
        if not isinstance(document, dict) or not document.get("message"):
            return None
        return cls(str(document["message"]), str(document.get("remedy", "")), bool(document.get("stops")))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A worker process as the registry knows it.

    Args:
        device: as it was asked for, until the model is loaded; then the one that it is on.
        live: whether its heartbeat is fresh by the database's clock.
        heartbeat_age_seconds: since its last sign of life, by the database's clock.
        gpu_uuid: of the GPU that its model is on, once that is known.
        facts: JSON-compatible facts about its machine (GPU, resident bytes, versions).
        job: id of the job it runs, if any.
    """

    name: str
    state: WorkerState
    queues: tuple[str, ...]
    host: str
    pid: int | None
    device: str
    job: str | None = None
    started_at: float
    heartbeat_at: float
    heartbeat_age_seconds: float = 0.0
    live: bool
    gpu_uuid: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def takes_jobs(self) -> bool:
        """Whether it lives, can load what jobs need, and does not drain."""
        return self.live and self.state is not WorkerState.DRAINING and not self.faulty

    @property
    def trouble(self) -> Trouble | None:
        """What it cannot load, while it lives."""
        return Trouble.read(self.facts.get("trouble")) if self.live else None

    @property
    def faulty(self) -> bool:
        """Whether it takes no jobs because of that."""
        return self.trouble is not None and self.trouble.stops

    @property
    def deaf_seconds(self) -> float:
        """For how long jobs have waited beside it, free as it is; 0 while it hears its bells, and once it is lost."""
        return float(self.facts.get("deaf_seconds") or 0.0) if self.live else 0.0

    @property
    def shown_state(self) -> str:
        """Its state; "faulty" when it takes no jobs, "lost" when it fell silent without having said that it stopped."""
        if self.faulty and self.state is not WorkerState.DRAINING:
            return "faulty"
        return self.state.value if self.live or self.state is WorkerState.STOPPED else "lost"


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """A queue: how many jobs stand where, and how old the oldest are by the database's clock.

    Args:
        lost: running jobs whose worker fell silent; they are among `running`, and wait for any worker.
        delayed: queued jobs that wait for a moment, after an error that may pass; they are among `queued`.
        oldest_queued_seconds: since the longest-waiting job was due; None when none waits.
        oldest_running_seconds: since the longest-running job first started; None when none runs.
    """

    name: str
    paused: bool
    queued: int = 0
    running: int = 0
    oldest_queued_seconds: float | None = None
    delayed: int = 0
    oldest_running_seconds: float | None = None
    lost: int = 0
