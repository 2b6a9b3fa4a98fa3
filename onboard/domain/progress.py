"""What a running job tells about itself, and how it hears that it has to stop."""

from __future__ import annotations

from typing import Any, Protocol

from onboard.domain.job import Stage


class Progress(Protocol):
    """Handed to the pipeline by the worker. Every call appends a JobEvent and is fenced by the job's attempt.

    Every method raises FencedError when another attempt owns the job; the pipeline lets it pass.
    """

    def stage_started(self, stage: Stage) -> None:
        """The job enters a stage; `Job.stage` shows it."""

    def stage_finished(self, stage: Stage, seconds: float, numbers: dict[str, Any]) -> None:
        """The stage ended after `seconds`; `numbers` are JSON-compatible facts (losses, rows, …)."""

    def note(self, message: str, **numbers: Any) -> None:
        """One line of progress inside the present stage."""

    def raise_if_cancelled_or_fenced(self) -> None:
        """Cheap; call it in every step of a loop.

        Raises:
            CancelledError: someone asked to cancel this job.
            FencedError: another attempt owns the job, or it has ended.
        """
