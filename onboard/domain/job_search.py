"""Which jobs are looked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from onboard.domain.job import JobState


@dataclass(frozen=True, slots=True)
class JobSearch:
    """Which jobs are looked for; what is None or empty does not count.

    Args:
        states: any of these.
        task: name of the task.
        queue: name of the queue.
        owner: who submitted it.
    """

    states: tuple[JobState, ...] = ()
    task: str | None = None
    queue: str | None = None
    owner: str | None = None

    @property
    def of_any_state(self) -> JobSearch:
        """The same whatever the state."""
        return replace(self, states=())
