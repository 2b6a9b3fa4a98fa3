"""A search for jobs, and its order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from onboard.domain.job import JobState


@dataclass(frozen=True, slots=True)
class JobSearch:
    """A search for jobs; fields that are None or empty are ignored.

    Args:
        states: any of these.
        owner: the submitter.
    """

    states: tuple[JobState, ...] = ()
    task: str | None = None
    queue: str | None = None
    owner: str | None = None

    @property
    def of_any_state(self) -> JobSearch:
        """Return the same search for any state."""
        return replace(self, states=())


class JobOrder(StrEnum):
    """Orders of a list of jobs. With "longest", unfinished jobs come before all others."""

    NEWEST = "newest"
    OLDEST = "oldest"
    LONGEST_WAIT = "longest-wait"
    SHORTEST_WAIT = "shortest-wait"
    LONGEST_RUN = "longest-run"
    SHORTEST_RUN = "shortest-run"
    TASK = "task"
    TASK_BACKWARDS = "task-backwards"
