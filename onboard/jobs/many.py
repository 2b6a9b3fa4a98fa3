"""Use cases: search jobs by page, with counts; cancel or retry many of them, in batches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from onboard.domain.job import Job, JobState, sources_of
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.errors import ConflictError, InputError, NotFoundError
from onboard.registry.clock import read_clock
from onboard.registry.database import Database
from onboard.registry.jobs import Edge, JobRepository

Change = Literal["cancel", "retry"]
MOST_AT_ONCE: Final = 100  # jobs changed per call
_MOST_REFUSALS: Final = 5  # number of refusals that are explained
_APART: Final = "~"
_NUMBER: Final = re.compile(r"-?\d{1,15}(\.\d{1,20})?(e-\d{1,3})?")


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs.

    Args:
        jobs: without large fields; see `JobRepository.briefs`.
        counts: number of jobs by state, ignoring the states of the search.
        next: start of the next page; None on the last one.
        now: time of the snapshot, by the database's clock.
    """

    jobs: Sequence[Job]
    counts: dict[JobState, int]
    next: str | None
    now: float

    def matching(self, search: JobSearch) -> int:
        """Return the number of all jobs that match."""
        return sum(count for state, count in self.counts.items() if not search.states or state in search.states)

    def changeable(self, search: JobSearch, change: Change) -> int:
        """Return the number of jobs that can be cancelled or retried."""
        able = {state: count for state, count in self.counts.items() if _is_for(change, state)}
        return sum(count for state, count in able.items() if not search.states or state in search.states)


@dataclass(slots=True)
class ChangedJobs:
    """The result of changing a batch of jobs.

    Args:
        refusals: reasons of the first few.
        after: id of the last job of the batch; None after the last batch.
    """

    done: int = 0
    refused: int = 0
    refusals: list[str] = field(default_factory=list)
    queues: set[str] = field(default_factory=set)
    after: str | None = None


def jobs_page(
    database: Database, search: JobSearch, after: str | None, limit: int, order: JobOrder = JobOrder.NEWEST
) -> JobPage:
    """Return the matching jobs in this order, with counts from one snapshot.

    Args:
        after: `next` of the previous page, or the id of its last job.

    Raises:
        InputError: `after` is invalid.
        NotFoundError: the job does not exist, or no longer does.
    """
    with database.snapshot() as session:
        repository = JobRepository(session)
        jobs, following = _listed(repository, search, after, limit, order)
        return JobPage(jobs, repository.counts(search.of_any_state), following, read_clock(session))


def listed_jobs(
    database: Database, search: JobSearch, after: str | None, limit: int, order: JobOrder = JobOrder.NEWEST
) -> tuple[Sequence[Job], str | None]:
    """Return the jobs of `jobs_page` and its `next`, without counts. Raises likewise."""
    with database.snapshot() as session:
        return _listed(JobRepository(session), search, after, limit, order)


def _listed(
    repository: JobRepository, search: JobSearch, after: str | None, limit: int, order: JobOrder
) -> tuple[list[Job], str | None]:
    edge = None if after is None else _edge(repository, after, order)
    jobs, more = _part(repository, search, order, edge, limit)
    return jobs, _place(repository, jobs[-1].id, order) if more else None


def _part(
    repository: JobRepository, search: JobSearch, order: JobOrder, edge: Edge | None, limit: int
) -> tuple[list[Job], bool]:
    """Return the next matching jobs, and whether there are more."""
    jobs = repository.briefs(search, order, edge, limit + 1)
    return jobs[:limit], len(jobs) > limit


def _place(repository: JobRepository, job_id: str, order: JobOrder) -> str:
    """Return a job's place as text: its id, after a sort key that may change between pages."""
    key, *_ = repository.edge(job_id, order)
    return f"{key!r}{_APART}{job_id}" if isinstance(key, float) else job_id


def _edge(repository: JobRepository, place: str, order: JobOrder) -> Edge:
    key, _, job_id = place.rpartition(_APART)
    edge = repository.edge(job_id, order)
    if not key:
        return edge
    if not (isinstance(edge[0], float) and _NUMBER.fullmatch(key)):
        raise InputError("unknown-place-in-order", field="after", place=place)
    return float(key), edge[1]


def change_selected(database: Database, change: Change, jobs: Iterable[str]) -> ChangedJobs:
    """Cancel or retry each of these jobs. Does not wake workers."""
    changed = ChangedJobs()
    for job_id in dict.fromkeys(jobs):
        _change(database, change, job_id, changed)
    return changed


def change_matching(
    database: Database, change: Change, search: JobSearch, after: str | None = None, most: int = MOST_AT_ONCE
) -> ChangedJobs:
    """Cancel or retry the next matching jobs, newest first; jobs that are submitted meanwhile stay unchanged.

    Jobs in other states are skipped: ended jobs are not cancelled, and only ended jobs are retried.

    Args:
        after: `ChangedJobs.after` of the previous call.

    Raises:
        NotFoundError: the job `after` no longer exists.
    """
    possible = [state for state in JobState if _is_for(change, state) and (not search.states or state in search.states)]
    changed = ChangedJobs()
    if not possible:
        return changed
    with database.read() as session:
        repository = JobRepository(session)
        edge = None if after is None else repository.edge(after, JobOrder.NEWEST)
        jobs, more = _part(repository, replace(search, states=tuple(possible)), JobOrder.NEWEST, edge, most)
    for job in jobs:
        _change(database, change, job.id, changed)
    changed.after = jobs[-1].id if more else None
    return changed


def _is_for(change: Change, state: JobState) -> bool:
    if change == "cancel":
        return state in sources_of(JobState.CANCELLED)
    return state.finished and state in sources_of(JobState.QUEUED)  # only the worker of a running job requeues it


def _change(database: Database, change: Change, job_id: str, changed: ChangedJobs) -> None:
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
