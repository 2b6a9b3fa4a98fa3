"""Following a job: live stages on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from cli.output import emit, report_error, say
from cli.waking import start_worker
from onboard.errors import JobFailedError

if TYPE_CHECKING:
    from onboard.domain.job import Job, JobEvent
    from onboard.services import Services

_POLL_SECONDS = 0.2
_WORKER_CHECK_SECONDS = 10.0
_DOCUMENT = (
    "job", "state", "task", "version", "embedding_digest", "hypernetwork_version", "init", "metrics", "guard",
    "seconds",
)  # fmt: skip


def wait_for(services: Services, job_id: str, as_json: bool) -> None:
    """Show the stages until the job has ended, then its result; exits 1 when it did not succeed."""
    try:
        job = follow(services, job_id)
    except KeyboardInterrupt:
        say(f"job {job_id} goes on without you: onboard jobs watch {job_id}, or: onboard jobs cancel {job_id}")
        raise typer.Exit(130) from None
    if job.result is None:
        error = job.error or {}
        message = f"Job {job.id} {job.state.value}: {error.get('message', 'no reason was given')}"
        remedy = error.get("remedy") or f"onboard jobs logs {job.id}, then: onboard jobs retry {job.id}"
        raise typer.Exit(report_error(JobFailedError(message, remedy, job=job.id, state=job.state.value), as_json))
    emit(result_document(job), as_json, lambda: _report(job))


def result_document(job: Job) -> dict[str, Any]:
    """The document that `submit --wait --json` prints."""
    assert job.result is not None
    return {key: job.result.get(key) for key in _DOCUMENT}


def follow(services: Services, job_id: str) -> Job:
    """Print the job's events as they come until it has ended."""
    from onboard.registry.events import EventRepository
    from onboard.registry.jobs import JobRepository

    display = _Live() if sys.stderr.isatty() else _Plain()
    seen = 0
    looked_at = time.monotonic()
    with display:
        while True:
            with services.database.read() as session:
                job = JobRepository(session).get(job_id)
                events = EventRepository(session).list(job_id, since=seen)
            for event in events:
                seen = event.id
                display.show(event)
            if job.state.finished:
                return job
            if time.monotonic() - looked_at > _WORKER_CHECK_SECONDS:
                start_worker(services, job.queue)  # the one that was there may have been killed
                looked_at = time.monotonic()
            time.sleep(_POLL_SECONDS)


def event_line(event: JobEvent) -> str:
    """One line of plain text for an event."""
    numbers = ", ".join(f"{key} {_short(value)}" for key, value in event.numbers.items() if value is not None)
    what = {
        "state": event.message,
        "stage_started": f"{event.stage}: started",
        "stage_finished": f"{event.stage}: done in {event.seconds or 0:.1f} s",
    }.get(event.kind, event.message)
    return f"{what}  ({numbers})" if numbers else what


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "/".join(f"{each}" for each in value.values())
    return str(value)


class _Plain:
    """One line per event."""

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, event: JobEvent) -> None:
        say(event_line(event))


class _Live:
    """A spinner with the present stage; finished stages stay as lines."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)
        self._status = self._console.status("waiting for a worker")

    def __enter__(self) -> _Live:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def show(self, event: JobEvent) -> None:
        from rich.text import Text

        line = Text(event_line(event))
        if event.kind == "stage_finished":
            self._console.print(Text("✓ ", style="green") + line)
        elif event.kind == "state" and event.message not in ("queued", "running"):
            self._console.print(line)
        else:
            self._status.update(line)


def _report(job: Job) -> Any:
    from onboard.report.terminal import render_text

    return render_text({**(job.result or {}), "version": (job.result or {}).get("version")})
