"""Jobs: submit, list, show, follow, report, cancel, retry."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from onboard.api.access import requires
from onboard.api.deps import ClientLeft, Cursor, Limit, OpenServices, decode_name, encode_cursor, wrong_cursor
from onboard.api.following import Reading, event_stream, identifying, while_signed_in
from onboard.api.forms import JobForm, described
from onboard.api.quotas import SubmitterWithRoom
from onboard.api.receiving import ReceivedJob
from onboard.api.remedies import findings_over_http, job_over_http
from onboard.contract.document import Name
from onboard.contract.jobs import NAME, Accepted, JobBrief, JobDocument, JobList, JobLog, Retry
from onboard.domain.access import Scope
from onboard.domain.job import JobState
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.errors import InputError, NotFoundError
from onboard.jobs.control import brief, cancel, find_job, full_document, news_of, report_document, retry
from onboard.jobs.logs import MOST_CURSOR_CHARACTERS, read_log
from onboard.jobs.many import listed_jobs
from onboard.jobs.waking import start_worker, wake

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
JobId = Annotated[str, Path(pattern=NAME, description="A job's id, or a task's name for its newest job.")]
LogCursor = Annotated[
    str | None,
    Query(
        max_length=MOST_CURSOR_CHARACTERS,
        description="`next` of the previous part; omit it to start from the beginning.",
    ),
]
Key = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        description="Idempotency key: repeating a request with the same key returns the first job.",
    ),
]

_EVENTS: Final = {
    "description": "`id`, `event` (the kind) and `data` (the event as JSON); the last event is `end` with the job."
}


@router.post("", status_code=202, response_model=Accepted, openapi_extra=described(JobForm))
def submit_job(
    identity: SubmitterWithRoom,
    received: ReceivedJob,
    services: OpenServices,
    request: Request,
    response: Response,
    left: ClientLeft,
    idempotency_key: Key = None,
) -> Accepted:
    """Submit a dataset: it is checked and queued, and a worker learns it."""
    submission = received.submission(key=idempotency_key)
    job, warning = request.app.state.intake.submit(submission, identity.name, received.upload.content_bytes, left)
    start_worker(services, job.queue)
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return Accepted.of_job(job, warning, findings_over_http(job.spec.options["dataset_report"]["warnings"]))


def _search(
    state: Annotated[list[JobState] | None, Query(description="Only jobs in these states.")] = None,
    task: Annotated[Name | None, Query(description="Only jobs of this task.")] = None,
    queue: Annotated[Name | None, Query(description="Only jobs of this queue.")] = None,
    owner: Annotated[str | None, Query(max_length=200, description="Only jobs that this token submitted.")] = None,
) -> JobSearch:
    return JobSearch(tuple(state or ()), task, queue, owner)


@router.get("", response_model=JobList, dependencies=[Depends(requires(Scope.READ))])
def list_jobs(
    services: OpenServices,
    search: Annotated[JobSearch, Depends(_search)],
    sort: Annotated[JobOrder, Query(description="Order of the jobs.")] = JobOrder.NEWEST,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List jobs, newest first or by `sort`."""
    try:
        jobs, following = listed_jobs(services.database, search, decode_name("jobs", cursor), limit, sort)
    except (InputError, NotFoundError) as error:  # the cursor belongs to another order, or its job was deleted
        raise wrong_cursor() from error
    return {
        "jobs": [job_over_http(brief(job)) for job in jobs],
        "next": None if following is None else encode_cursor("jobs", following),
    }


@router.get("/{job}", response_model=JobDocument, dependencies=[Depends(requires(Scope.READ))])
def show_job(
    job: JobId,
    services: OpenServices,
    since: Annotated[int, Query(ge=0, lt=2**53, description="Only events after this id.")] = 0,
) -> dict[str, Any]:
    """Return a job in full: why it waits, its progress, result, candidates, events."""
    return job_over_http(full_document(services.database, find_job(services.database, job), since))


@router.get("/{job}/logs", response_model=JobLog, dependencies=[Depends(requires(Scope.OPS))])
def log_job(
    job: JobId,
    services: OpenServices,
    attempt: Annotated[int | None, Query(ge=1, lt=2**31, description="Only events of this attempt.")] = None,
    cursor: LogCursor = None,
) -> dict[str, Any]:
    """Return a job's events, and its worker's log lines about it if the service can read them."""
    from onboard.operations.worker_logs import log_files

    return job_over_http(read_log(services.database, log_files(services.settings), job, attempt, cursor))


@router.get(
    "/{job}/events",
    response_class=StreamingResponse,
    dependencies=[Depends(requires(Scope.READ))],
    responses={
        200: {"description": "Events as they happen.", "content": {"text/event-stream": {"schema": _EVENTS}}},
        204: {"description": "The job has ended, and there are no later events."},
    },
)
def follow_job(
    job: JobId,
    services: OpenServices,
    request: Request,
    readers: Reading,
    last_event_id: Annotated[
        int, Header(ge=0, lt=2**53, description="Id of the last event received; events after it follow.")
    ] = 0,
) -> Response:
    """Stream a job's events (server-sent events), and an event `end` with the job once it has ended."""
    job_id = find_job(services.database, job).id
    present, events = news_of(services.database, job_id, last_event_id)
    if present.state.finished and last_event_id and not events:
        return Response(status_code=204)  # tells a browser not to reconnect
    texts = readers.follow(services.database, job_id, last_event_id)
    return event_stream(while_signed_in(texts, identifying(request)))


@router.get("/{job}/report", response_class=HTMLResponse, dependencies=[Depends(requires(Scope.READ))])
def report_job(job: JobId, services: OpenServices) -> HTMLResponse:
    """Return the report as an HTML page."""
    from onboard.report import render

    return HTMLResponse(render(job_over_http(report_document(services.database, find_job(services.database, job)))))


@router.post("/{job}/cancel", response_model=JobBrief, dependencies=[Depends(requires(Scope.SUBMIT))])
def cancel_job(job: JobId, services: OpenServices) -> dict[str, Any]:
    """Cancel a queued job at once, a running one at its next step."""
    return job_over_http(brief(cancel(services.database, job)))


@router.post("/{job}/retry", response_model=JobBrief, dependencies=[Depends(requires(Scope.SUBMIT))])
def retry_job(job: JobId, services: OpenServices, body: Retry | None = None) -> dict[str, Any]:
    """Queue a failed, cancelled or dead job again; it continues after its last finished stage."""
    queued = retry(services.database, job, body.time_limit if body else None)
    wake(services, queued.queue, outside=True)
    return job_over_http(brief(queued))
