"""Which jobs are looked for, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

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


class JobOrder(StrEnum):
    """Orders of a list of jobs. Of the longest, those that still wait or run come before all others."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LONGEST_WAIT = "longest-wait"
    SHORTEST_WAIT = "shortest-wait"
    LONGEST_RUN = "longest-run"
    SHORTEST_RUN = "shortest-run"
    TASK = "task"
    TASK_BACKWARDS = "task-backwards"
