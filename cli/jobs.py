"""`onboard jobs`: list, show, follow, cancel and retry jobs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.columns import Columns
from cli.connection import connected
from cli.live import INTERVAL, Interval
from cli.output import AsJson, emit, write_file
from cli.workers import attempts_text
from onboard.domain.job import JobState
from onboard.domain.job_search import JobOrder
from onboard.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType


app = typer.Typer(help="List, follow, cancel and retry jobs.", no_args_is_help=True, rich_markup_mode=None)
JobId = Annotated[str, typer.Argument(help="A job's id, or a task's name for its newest job.")]


@app.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="Only these states.")] = None,
    task: Annotated[str | None, typer.Option(help="Only this task.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of entries.")] = 50,
    sort: Annotated[str, typer.Option(help="Order: " + ", ".join(JobOrder) + ".")] = JobOrder.NEWEST.value,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first or by --sort."""
    _require_known(JobState, state or ())
    _require_known(JobOrder, [sort])
    with connected(register=False) as service:
        jobs = [job.document for job in service.jobs(state or (), task, limit, sort)]
    emit({"jobs": jobs}, as_json, lambda: _table(jobs))


@app.command()
def show(
    job: JobId,
    report: Annotated[Path | None, typer.Option(help="Write the report as an HTML page.")] = None,
    label_next: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the texts to label next to this file, as CSV if it ends in .csv, else as JSONL."
        ),
    ] = None,
    label_tool: Annotated[
        str | None,
        typer.Option(metavar="TOOL", help="Write them in the import format of label-studio, argilla or doccano."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a job in full: why it waits, progress, result, candidates, stages, warnings."""
    from cli.open_jobs import running_lines, waiting_lines

    if label_tool is not None:
        from cli.label_tools import require_label_tool

        require_label_tool(label_tool)
        if label_next is None:
            raise InputError("label-tool-without-file")
    with connected(register=False) as service:
        document = service.job(job).document
    if report is not None:
        from onboard.report import render

        write_file(report, render(document).encode(), "report", "--report another file")
    if label_next is not None:
        from cli.prediction_files import write_label_next

        write_label_next(document, label_next, label_tool)
    wait, running = document["waiting"], document["running"]
    lines = [*(waiting_lines(wait) if wait else []), *(running_lines(running) if running else [])]
    emit(document, as_json, lambda: _rendered(document, lines))


@app.command()
def logs(
    job: JobId,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until the job has ended.")] = False,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only this attempt.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print a job's events, and its worker's log lines about it if they can be read here."""
    from cli.job_logs import show_logs

    with connected(register=False) as service:
        show_logs(service, job, attempt=attempt, follow=follow, as_json=as_json)


@app.command()
def watch(
    job: Annotated[str | None, typer.Argument(help="A job's id, or a task's name. Without it, all open jobs.")] = None,
    interval: Interval = INTERVAL,
    as_json: AsJson = False,
) -> None:
    """Follow a job until it has ended (exit 1 if it did not succeed), or all open jobs until Ctrl-C.

    Open jobs are refreshed in place on a terminal; --json prints one document per line.
    """
    from cli.open_jobs import watch_open_jobs
    from cli.watch import wait_for

    with connected(register=False) as service:
        if job is None:
            watch_open_jobs(service, as_json, interval)
        else:
            wait_for(service, service.job(job).id, as_json)


@app.command()
def cancel(job: JobId, as_json: AsJson = False) -> None:
    """Cancel a queued job at once, a running one at its next step; exit 4 if it has ended."""
    with connected(register=False) as service:
        cancelled = service.cancel(job).document
    text = "cancelled" if cancelled["state"] == "cancelled" else "asked to stop"
    emit(cancelled, as_json, lambda: f"job {cancelled['job']} is {text}")


@app.command()
def retry(
    job: JobId,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="New time limit of an attempt, in seconds. Defaults to the current limit."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Queue a failed, cancelled or dead job again; it continues after its last finished stage."""
    with connected(register=False) as service:
        queued = service.retry(job, time_limit).document
    emit(queued, as_json, lambda: f"job {queued['job']} is queued again\nonboard jobs watch {queued['job']}")


def _require_known(kind: type[StrEnum], names: Sequence[str]) -> None:
    odd = [name for name in names if name not in list(kind)]
    if odd:
        raise InputError("unknown-job-choice", odd=odd[0], kind=kind.__name__, remedy="use one of: " + ", ".join(kind))


def _rendered(document: dict[str, Any], lines: list[str]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from onboard.report.terminal import render_text

    return Group(*map(Text, lines), render_text(document))


def _table(jobs: Sequence[dict[str, Any]]) -> Columns:
    columns = Columns("job", "task", "state", "stage", "attempt", "version", "submitted")
    for job in jobs:
        open_stage = "" if JobState(job["state"]).finished else job["stage"] or ""
        columns.add(
            job["job"],
            job["task"],
            job["state"],
            open_stage,
            attempts_text(job["attempt"], job["max_attempts"]),
            f"v{job['version']}" if job["version"] else "",
            str(job["created_at"])[:19].replace("T", " "),
        )
    return columns
