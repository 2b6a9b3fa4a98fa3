"""Use cases: a page of the jobs that fit a search, with counts; many of them cancelled or retried, a part at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from onboard.domain.job import Job, JobState, sources_of
from onboard.domain.job_search import JobSearch
from onboard.errors import ConflictError, NotFoundError
from onboard.registry.database import Database
from onboard.registry.jobs import JobRepository

Change = Literal["cancel", "retry"]
MOST_AT_ONCE: Final = 100  # jobs that one call changes
_MOST_REFUSALS: Final = 5  # that are told


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs.

    Args:
        jobs: without what is wide: see `JobRepository.briefs`.
        counts: how many jobs stand where that fit all of the search but its states.
        more: whether there are jobs after the last one.
    """

    jobs: Sequence[Job]
    counts: dict[JobState, int]
    more: bool

    def matching(self, search: JobSearch) -> int:
        """How many jobs fit in all."""
        return sum(count for state, count in self.counts.items() if not search.states or state in search.states)


@dataclass(slots=True)
class Changed:
    """What became of a part of many jobs.

    Args:
        done: jobs that were changed.
        refused: jobs that could not be.
        refusals: why, of the first few.
        queues: those that jobs were queued in.
        after: id of the last job that was looked at, to go on after it; None when that was the last of all.
    """

    done: int = 0
    refused: int = 0
    refusals: list[str] = field(default_factory=list)
    queues: set[str] = field(default_factory=set)
    after: str | None = None


def jobs_page(
    database: Database, search: JobSearch, after: str | None, limit: int, *, oldest_first: bool = False
) -> JobPage:
    """The jobs that fit, newest first unless the oldest are to be, with the counts of one moment.

    Args:
        after: id of the last job of the page before.

    Raises:
        NotFoundError: there is no such job (any more).
    """
    with database.snapshot() as session:
        repository = JobRepository(session)
        jobs, more = _part(repository, search, after, limit, oldest_first=oldest_first)
        return JobPage(jobs, repository.counts(search.of_any_state), more)


def _part(
    repository: JobRepository, search: JobSearch, after: str | None, limit: int, *, oldest_first: bool = False
) -> tuple[list[Job], bool]:
    """The next jobs that fit, and whether there are more; as `jobs_page`, without the counts of the whole table."""
    edge = None if after is None else repository.number_of(after)
    jobs = repository.briefs(search, edge, limit + 1, oldest_first=oldest_first)
    return jobs[:limit], len(jobs) > limit


def change_selected(database: Database, change: Change, jobs: Iterable[str]) -> Changed:
    """Cancel or retry jobs by their ids, each on its own. Nobody is woken by it."""
    changed = Changed()
    for job_id in dict.fromkeys(jobs):
        _change(database, change, job_id, changed)
    return changed


def change_matching(
    database: Database, change: Change, search: JobSearch, after: str | None = None, most: int = MOST_AT_ONCE
) -> Changed:
    """Cancel or retry the next jobs that fit, from the newest on: what is submitted meanwhile stays as it is.

    Jobs that this change is not for (those that have ended are not cancelled, only those are retried) are passed over.

    Args:
        after: `Changed.after` of the call before.

    Raises:
        NotFoundError: the job `after` is gone.
    """
    possible = [state for state in JobState if _is_for(change, state) and (not search.states or state in search.states)]
    changed = Changed()
    if not possible:
        return changed
    with database.read() as session:
        jobs, more = _part(JobRepository(session), replace(search, states=tuple(possible)), after, most)
    for job in jobs:
        _change(database, change, job.id, changed)
    changed.after = jobs[-1].id if more else None
    return changed


def _is_for(change: Change, state: JobState) -> bool:
    if change == "cancel":
        return state in sources_of(JobState.CANCELLED)
    return state.finished and state in sources_of(JobState.QUEUED)  # a running one is queued again by its worker only


def _change(database: Database, change: Change, job_id: str, changed: Changed) -> None:
    try:
        with database.write() as session:
            jobs = JobRepository(session)
            job = jobs.cancel(job_id) if change == "cancel" else jobs.retry(job_id)
    except (ConflictError, NotFoundError) as error:
        changed.refused += 1
        if len(changed.refusals) < _MOST_REFUSALS:
            changed.refusals.append(error.message)
        return
    changed.done += 1
    if change == "retry":
        changed.queues.add(job.queue)
