"""Workers and queues as operators see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Self

STARTING_SECONDS: Final = 60.0  # a new worker counts as live for this long without a heartbeat


class WorkerState(StrEnum):
    """The state of a worker."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a worker cannot work: its machine lacks something, or something on it is broken.

    Args:
        stops: whether it takes no jobs until that is fixed.
    """

    message: str
    remedy: str
    stops: bool

    def to_json(self) -> dict[str, Any]:
        """Return the document for the facts of its row."""
        return {"message": self.message, "remedy": self.remedy, "stops": self.stops}

    @classmethod
    def read(cls, document: Any) -> Self | None:
        """Read the output of `to_json`; None if it is invalid."""
        if not isinstance(document, dict) or not document.get("message"):
            return None
        return cls(str(document["message"]), str(document.get("remedy", "")), bool(document.get("stops")))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRecord:
    """A worker process in the registry.

    Args:
        device: as requested until the model is loaded; then the actual one.
        live: whether its heartbeat is recent, by the database's clock.
        heartbeat_age_seconds: since its last heartbeat, by the database's clock.
        gpu_uuid: of the GPU with its model, once known.
        facts: JSON-compatible facts about its machine (GPU, resident bytes, versions).
        job: id of its current job, if any.
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
        """Whether it is alive, can load what jobs need, and is not draining."""
        return self.live and self.state is not WorkerState.DRAINING and not self.faulty

    @property
    def trouble(self) -> Trouble | None:
        """The reason why it cannot load what jobs need; None if it can, or if the worker is no longer alive."""
        return Trouble.read(self.facts.get("trouble")) if self.live else None

    @property
    def faulty(self) -> bool:
        """Whether it takes no jobs because of that."""
        return self.trouble is not None and self.trouble.stops

    @property
    def deaf_seconds(self) -> float:
        """For how long it has been idle while jobs waited; 0 while it reacts to wake-ups, and after it is lost."""
        return float(self.facts.get("deaf_seconds") or 0.0) if self.live else 0.0

    @property
    def shown_state(self) -> str:
        """Its state; "faulty" if it takes no jobs, "lost" if it became unresponsive without signing off."""
        if self.faulty and self.state is not WorkerState.DRAINING:
            return "faulty"
        return self.state.value if self.live or self.state is WorkerState.STOPPED else "lost"


@dataclass(frozen=True, slots=True)
class QueueStatus:
    """A queue: number of jobs by state, and the age of the oldest, by the database's clock.

    Args:
        lost: running jobs with an unresponsive worker; included in `running`, and any worker may take them.
        delayed: queued jobs in back-off after a temporary error; included in `queued`.
        oldest_queued_seconds: since the longest-waiting job was due; None if none waits.
        oldest_running_seconds: since the longest-running job first started; None if none runs.
    """

    name: str
    paused: bool
    queued: int = 0
    running: int = 0
    oldest_queued_seconds: float | None = None
    delayed: int = 0
    oldest_running_seconds: float | None = None
    lost: int = 0
