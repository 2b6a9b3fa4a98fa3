"""The list of jobs: filters, counts, pages; cancel or retry some or all matching jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import Response

from onboard.api.access import requires
from onboard.api.deps import OpenServices
from onboard.api.pages.frame import page, place_of
from onboard.contract.versions import VersionDocument
from onboard.domain.access import Scope
from onboard.domain.job import JobState
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.errors import InputError
from onboard.jobs.control import brief
from onboard.jobs.many import MOST_AT_ONCE, Change, ChangedJobs, JobPage, change_matching, change_selected, jobs_page
from onboard.jobs.waking import wake
from onboard.registry.database import Database
from onboard.report.versions import result_of
from onboard.versions.describe import published

PAGE: Final = 50  # jobs
_MOST_LETTERS: Final = 200
_READ: Final = [Depends(requires(Scope.READ))]
_SUBMIT: Final = [Depends(requires(Scope.SUBMIT))]
Text = Annotated[str, Query(max_length=_MOST_LETTERS)]
FormText = Annotated[str, Form(max_length=_MOST_LETTERS)]
FormChange = Annotated[Change, Form()]
Number = Annotated[int, Form(ge=0, lt=2**31)]

_ORDERS: Final = {
    JobOrder.NEWEST: "newest first",
    JobOrder.OLDEST: "oldest first",
    JobOrder.LONGEST_WAIT: "longest wait first",
    JobOrder.SHORTEST_WAIT: "shortest wait first",
    JobOrder.LONGEST_RUN: "longest run first",
    JobOrder.SHORTEST_RUN: "shortest run first",
    JobOrder.TASK: "task, A to Z",
    JobOrder.TASK_BACKWARDS: "task, Z to A",
}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters from the address, so that a shared link shows the same jobs."""

    search: JobSearch
    sort: JobOrder

    def address(self, **changes: Any) -> str:
        """Return the address of the same list, with changes."""
        search = self.search
        given: dict[str, Any] = {
            "state": [state.value for state in search.states], "task": search.task, "queue": search.queue,
            "owner": search.owner, "sort": None if self.sort is JobOrder.NEWEST else self.sort.value, **changes,
        }  # fmt: skip
        return place_of("/jobs", given)

    @property
    def command(self) -> str:
        """Return the command that lists the same."""
        options = [f"--state {state.value}" for state in self.search.states]
        if self.search.task:
            options.append(f"--task {self.search.task}")
        if self.sort is not JobOrder.NEWEST:
            options.append(f"--sort {self.sort.value}")
        return " ".join(["onboard jobs list", *options])


@dataclass(frozen=True, slots=True)
class ChangeProgress:
    """Progress of a change of all matching jobs: where to continue, and previous results."""

    after: str
    done: int
    refused: int


def _search(state: list[JobState] | None, task: str, queue: str, owner: str) -> JobSearch:
    return JobSearch(tuple(state or ()), task.strip() or None, queue.strip() or None, owner.strip() or None)


def _filters(
    state: Annotated[list[JobState] | None, Query()] = None,
    task: Text = "",
    queue: Text = "",
    owner: Text = "",
    sort: Annotated[JobOrder, Query()] = JobOrder.NEWEST,
) -> Filters:
    return Filters(_search(state, task, queue, owner), sort)


def _posted(
    state: Annotated[list[JobState] | None, Form()] = None,
    task: FormText = "",
    queue: FormText = "",
    owner: FormText = "",
) -> Filters:
    return Filters(_search(state, task, queue, owner), JobOrder.NEWEST)


def _progress(after: FormText = "", done: Number = 0, refused: Number = 0) -> ChangeProgress:
    return ChangeProgress(after, done, refused)


@router.get("/jobs", dependencies=_READ)
@router.get("/jobs.json", dependencies=_READ)
def list_jobs(
    request: Request, services: OpenServices, filters: Annotated[Filters, Depends(_filters)], after: Text = ""
) -> Response:
    """Show a page of the matching jobs, newest first by default."""
    jobs = jobs_page(services.database, filters.search, after or None, PAGE, filters.sort)
    document = {
        "jobs": with_results(services.database, jobs),
        "counts": {state.value: jobs.counts.get(state, 0) for state in JobState},
        "matching": jobs.matching(filters.search),
        "cancellable": jobs.changeable(filters.search, "cancel"),
        "retryable": jobs.changeable(filters.search, "retry"),
        "next": jobs.next,
    }
    more: dict[str, Any] = {
        "filters": filters, "search": filters.search, "after": after, "states": list(JobState), "orders": _ORDERS,
    }  # fmt: skip
    return page(request, "jobs.html", document, **more)


@router.post("/jobs/selected", dependencies=_SUBMIT)
def change_jobs(
    change: FormChange,
    request: Request,
    services: OpenServices,
    filters: Annotated[Filters, Depends(_posted)],
    job: Annotated[list[str] | None, Form(max_length=PAGE)] = None,
) -> Response:
    """Cancel or retry the selected jobs."""
    if not job:
        raise InputError("no-job-selected")
    changed = change_selected(services.database, change, job)
    return _told(request, services, change, changed, filters, ChangeProgress("", 0, 0))


@router.post("/jobs/matching", dependencies=_SUBMIT)
def change_all_jobs(
    change: FormChange,
    request: Request,
    services: OpenServices,
    filters: Annotated[Filters, Depends(_posted)],
    progress: Annotated[ChangeProgress, Depends(_progress)],
) -> Response:
    """Cancel or retry the next hundred matching jobs; the returned page then requests the next ones itself."""
    changed = change_matching(services.database, change, filters.search, progress.after or None, MOST_AT_ONCE)
    return _told(request, services, change, changed, filters, progress)


def with_results(database: Database, jobs: JobPage) -> list[dict[str, Any]]:
    """Return the jobs of a page as documents, each with its times and the metric of its version."""
    documents = [
        {**brief(job), "waited_seconds": job.waited_seconds(jobs.now), "ran_seconds": job.ran_seconds(jobs.now)}
        for job in jobs.jobs
    ]
    numbers = [(job["task"], job["version"]) for job in documents if job["version"] is not None]
    versions = {
        (version.task, version.version): VersionDocument.of(version).to_json()
        for version in published(database, numbers)
    }
    for job in documents:
        version = versions.get((job["task"], job["version"]))
        job["result"] = None if version is None else result_of(version)
    return documents


def _told(
    request: Request, services: Any, change: Change, changed: ChangedJobs, filters: Filters, before: ChangeProgress
) -> Response:
    for queue in sorted(changed.queues):
        wake(services, queue, outside=True)
    request.app.state.overview.forget()
    done, refused = before.done + changed.done, before.refused + changed.refused
    document = {"change": change, "done": done, "refused": refused, "next": changed.after}
    return page(
        request, "jobs_changed.html", document, filters=filters, search=filters.search, refusals=changed.refusals
    )
