"""Fakes of the real interfaces, for tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from onboard.domain.job import Stage
from onboard.errors import CancelledError, UnavailableError

__all__ = ["MemoryDoorbell", "RecordedProgress"]


@dataclass
class MemoryDoorbell:
    """A doorbell that only counts. With `broken` it behaves like an unavailable broker."""

    rung: Counter[str] = field(default_factory=Counter)
    broken: bool = False

    def ring(self, queue: str) -> None:
        """Count one ring."""
        if self.broken:
            raise UnavailableError("broker-unreachable")
        self.rung[queue] += 1


@dataclass
class RecordedProgress:
    """A Progress that records its calls as (kind, name or message, numbers). `cancelled` stops the pipeline."""

    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    cancelled: bool = False

    @property
    def stages(self) -> list[str]:
        """The finished stages, in order."""
        return [name for call, name, _ in self.calls if call == "finished"]

    def stage_started(self, stage: Stage) -> None:
        """Record the call."""
        self.calls.append(("started", stage.value, {}))

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        """Record the call."""
        self.calls.append(("finished", stage.value, {"seconds": seconds, **numbers}))

    def note(self, message: str, **numbers: Any) -> None:
        """Record the call."""
        self.calls.append(("note", message, numbers))

    def raise_if_cancelled_or_fenced(self) -> None:
        """Raise CancelledError once `cancelled` is set."""
        if self.cancelled:
            raise CancelledError("job-cancelled")
