"""How a running job reports progress and learns that it has to stop."""

from __future__ import annotations

from typing import Any, Protocol

from onboard.domain.job import Stage


class Progress(Protocol):
    """Passed to the pipeline by the worker. Every call appends a JobEvent and is fenced by the job's attempt.

    All methods raise FencedError if another attempt owns the job; the pipeline passes it on.
    """

    def stage_started(self, stage: Stage) -> None:
        """Enter a stage, which `Job.stage` shows."""

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        """End a stage after `seconds`; `numbers` are JSON-compatible facts (losses, rows, …)."""

    def note(self, message: str, **numbers: Any) -> None:
        """Write a line of progress within the current stage."""

    def raise_if_cancelled_or_fenced(self) -> None:
        """Check for reasons to stop; cheap enough for every step of a loop.

        Raises:
            CancelledError: someone cancelled this job.
            FencedError: another attempt owns the job, or it has ended.
        """
