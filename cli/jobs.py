"""`onboard jobs`: what was asked, how far it is, what came of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.columns import Columns
from cli.live import INTERVAL, Interval
from cli.output import AsJson, emit, say
from cli.services import opened
from cli.workers import attempts_text
from onboard.domain.moment import utc_text
from onboard.errors import NotAllowedError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from onboard.domain.job import Job
    from onboard.services import Services

app = typer.Typer(help="What was asked, how far it is, what came of it.", no_args_is_help=True, rich_markup_mode=None)
JobId = Annotated[str, typer.Argument(help="A job's id, or a task's name for its newest job.")]


@app.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="Only these states.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    limit: Annotated[int, typer.Option(help="At most so many, newest first.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Jobs, newest first."""
    from onboard.domain.job import JobState
    from onboard.errors import InputError
    from onboard.registry.jobs import JobRepository

    try:
        states = [JobState(each) for each in state] if state else None
    except ValueError as error:
        raise InputError(f"{error}.", "use one of: " + ", ".join(JobState)) from error
    with opened(register=False) as services, services.database.read() as session:
        jobs = JobRepository(session).list(states=states, task=task, limit=limit)
    emit({"jobs": [_brief(job) for job in jobs]}, as_json, lambda: _table(jobs))


@app.command()
def show(
    job: JobId,
    report: Annotated[Path | None, typer.Option(help="Write the report as one HTML page.")] = None,
    as_json: AsJson = False,
) -> None:
    """A job in full: why it waits, where it is, result, candidates, stages, warnings."""
    from cli.open_jobs import running_lines, waiting_lines
    from onboard.watching import running_job, waiting

    with opened(register=False) as services:
        found = find_job(services, job)
        document = _document(services, found)
        running = running_job(services.database, found)
        wait = waiting(services.database, found) if running is None else None
    document["waiting"] = wait.to_json() if wait else None
    document["running"] = running.to_json() if running else None
    if report is not None:
        _write_report(document, report)
    lines = [*(waiting_lines(wait) if wait else []), *(running_lines(running) if running else [])]
    emit(document, as_json, lambda: _rendered(document, lines))


@app.command()
def logs(
    job: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt.")] = None,
    as_json: AsJson = False,
) -> None:
    """A job's events, and what its worker logged about it where that can be read from here."""
    from cli.job_logs import show_logs

    with opened(register=False) as services:
        found = find_job(services, job)
        if attempt is not None and attempt > found.attempt:
            raise NotFoundError(
                f"Job {found.id} has had {found.attempt} attempts.", f"onboard jobs logs {found.id}", attempt=attempt
            )
        show_logs(services, found, attempt=attempt, follow=follow, as_json=as_json)


@app.command()
def watch(
    job: Annotated[str | None, typer.Argument(help="A job's id, or a task's name; all open jobs without it.")] = None,
    interval: Interval = INTERVAL,
    as_json: AsJson = False,
) -> None:
    """Follow a job until it has ended (exit 1 when it did not succeed), or all open jobs until Ctrl-C.

    All open jobs: redrawn in place on a terminal, else block after block; with --json one document per line.
    """
    from cli.open_jobs import watch_open_jobs
    from cli.watch import wait_for

    with opened(register=False) as services:
        if job is None:
            watch_open_jobs(services, as_json, interval)
        else:
            wait_for(services, find_job(services, job).id, as_json)


@app.command()
def cancel(job: JobId, as_json: AsJson = False) -> None:
    """Cancel a queued job at once, a running one at its next step; exit 4 when it has ended."""
    from onboard.registry.jobs import JobRepository

    with opened(register=False) as services:
        found = find_job(services, job)
        with services.database.write() as session:
            cancelled = JobRepository(session).cancel(found.id)
    text = "cancelled" if cancelled.state.finished else "asked to stop"
    emit(_brief(cancelled), as_json, lambda: f"job {cancelled.id} is {text}")


@app.command()
def retry(
    job: JobId,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="A new limit; else it keeps the one it has.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Queue a failed, cancelled or dead job again; it goes on after its last finished stage."""
    from cli.waking import wake
    from onboard.registry.jobs import JobRepository

    with opened(register=False) as services:
        found = find_job(services, job)
        with services.database.write() as session:
            queued = JobRepository(session).retry(found.id, time_limit_seconds=time_limit)
        wake(services, queued.queue)
    emit(_brief(queued), as_json, lambda: f"job {queued.id} is queued again\nonboard jobs watch {queued.id}")


def find_job(services: Services, name: str) -> Job:
    """The job of that id, or the newest job of that task.

    Raises:
        NotFoundError: neither exists.
    """
    from onboard.registry.jobs import JobRepository

    with services.database.read() as session:
        jobs = JobRepository(session)
        newest = [] if re.fullmatch(r"[0-9a-f]{12}", name) else jobs.list(task=name, limit=1)
        if newest:
            return newest[0]
        try:
            return jobs.get(name)
        except NotFoundError as error:
            raise NotFoundError(
                f"There is no job or task with jobs called {name!r}.", "onboard jobs list", job=name
            ) from error


def _brief(job: Job) -> dict[str, Any]:
    document = job.to_json()
    for key in ("spec", "result"):
        document.pop(key)
    return {**document, "version": (job.result or {}).get("version")}


def _document(services: Services, job: Job) -> dict[str, Any]:
    """The job's row, its result and its events as one report document."""
    from onboard.registry.events import EventRepository

    with services.database.read() as session:
        events = EventRepository(session).list(job.id)
    document = job.to_json()
    result = document.pop("result") or {}
    document["spec"]["options"] = {key: value for key, value in job.spec.options.items() if key != "dataset_report"}
    return {
        **document,
        **result,
        "state": job.state.value,
        "events": [event.to_json() for event in events],
    }


def _write_report(document: dict[str, Any], path: Path) -> None:
    from onboard.report import render

    try:
        path.write_text(render(document), encoding="utf-8")
    except OSError as error:
        raise NotAllowedError(
            f"The report cannot be written to {path}: {error.strerror}.", "--report another file"
        ) from error
    say(f"report: {path}")


def _rendered(document: dict[str, Any], lines: list[str]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from onboard.report.terminal import render_text

    return Group(*map(Text, lines), render_text(document))


def _table(jobs: Sequence[Job]) -> Columns:
    columns = Columns("job", "task", "state", "stage", "attempt", "version", "submitted")
    for job in jobs:
        version = (job.result or {}).get("version")
        columns.add(
            job.id,
            job.spec.task,
            job.state.value,
            "" if job.state.finished else job.stage or "",
            attempts_text(job),
            f"v{version}" if version else "",
            utc_text(job.created_at),
        )
    return columns
