"""Fakes behind the real interfaces, for tests of ours and of those who build on this package."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from onboard.domain.job import Stage
from onboard.errors import CancelledError, UnavailableError

__all__ = ["MemoryDoorbell", "RecordedProgress"]


@dataclass
class MemoryDoorbell:
    """A doorbell that only counts. With `broken` set it behaves like a broker that is away."""

    rung: Counter[str] = field(default_factory=Counter)
    broken: bool = False

    def ring(self, queue: str) -> None:
        """Count one ring."""
        if self.broken:
            raise UnavailableError("broker-unreachable")
        self.rung[queue] += 1


@dataclass
class RecordedProgress:
    """A Progress that keeps what it is told: (what, name or message, numbers). `cancelled` stops the pipeline."""

    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    cancelled: bool = False

    @property
    def stages(self) -> list[str]:
        """The stages that finished, in order."""
        return [name for what, name, _ in self.calls if what == "finished"]

    def stage_started(self, stage: Stage) -> None:
        """Keep it."""
        self.calls.append(("started", stage.value, {}))

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        """Keep it."""
        self.calls.append(("finished", stage.value, {"seconds": seconds, **numbers}))

    def note(self, message: str, **numbers: Any) -> None:
        """Keep it."""
        self.calls.append(("note", message, numbers))

    def raise_if_cancelled_or_fenced(self) -> None:
        """Raise CancelledError once `cancelled` is set."""
        if self.cancelled:
            raise CancelledError("job-cancelled")
