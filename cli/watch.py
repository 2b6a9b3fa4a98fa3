"""Following a job: live stages on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from cli.output import emit, report_error, say
from cli.waking import start_worker
from onboard.domain.job import JobState
from onboard.errors import JobFailedError, UnavailableError

if TYPE_CHECKING:
    from onboard.domain.job import Job, JobEvent
    from onboard.domain.waiting import Waiting
    from onboard.services import Services

_POLL_SECONDS = 0.2
_WAIT_SECONDS = 2.0  # how often it is asked why the job waits
_WORKER_CHECK_SECONDS = 10.0
_AWAY_SECONDS = 1.0
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
    """Print the job's events as they come until it has ended. A database that goes away is said and waited for."""
    display = _Live() if sys.stderr.isatty() else _Plain()
    follower = _Follower(services, job_id)
    away = False
    with display:
        while True:
            try:
                job = follower.step(display)
            except UnavailableError as error:
                if not away:
                    say(f"{error.message} Waiting for it.")
                away = True
                time.sleep(_AWAY_SECONDS)
                continue
            if away:
                say("The database is back.")
            away = False
            if job.state.finished:
                return job
            time.sleep(_POLL_SECONDS)


class _Follower:
    """Remembers what of a job was shown already."""

    def __init__(self, services: Services, job_id: str) -> None:
        self._services = services
        self._job_id = job_id
        self._seen = 0
        self._worker_at = self._wait_at = time.monotonic()

    def step(self, display: _Plain | _Live) -> Job:
        """Show what is new, and see to it that there is a worker. Returns the job. Raises UnavailableError."""
        from onboard.registry.events import EventRepository
        from onboard.registry.jobs import JobRepository

        with self._services.database.read() as session:
            job = JobRepository(session).get(self._job_id)
            events = EventRepository(session).list(self._job_id, since=self._seen)
        for event in events:
            self._seen = event.id
            display.show(event)
        now = time.monotonic()
        if job.state is JobState.QUEUED and now - self._wait_at > _WAIT_SECONDS:
            self._wait_at = now
            self._show_wait(display, job)
        if now - self._worker_at > _WORKER_CHECK_SECONDS:
            self._worker_at = now
            start_worker(self._services, job.queue)  # the one that was there may have been killed
        return job

    def _show_wait(self, display: _Plain | _Live, job: Job) -> None:
        from onboard.watching import waiting

        wait = waiting(self._services.database, job)
        if wait is not None:
            display.wait(wait)


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

    def __init__(self) -> None:
        self._remedy = ""

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, event: JobEvent) -> None:
        say(event_line(event))

    def wait(self, waiting: Waiting) -> None:
        """A line only where somebody has to do something, and once: the figures change all the time."""
        if waiting.remedy and waiting.remedy != self._remedy:
            say(f"waiting: {waiting.message}\n  → {waiting.remedy}")
        self._remedy = waiting.remedy


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

    def wait(self, waiting: Waiting) -> None:
        from rich.text import Text

        remedy = f"  → {waiting.remedy}" if waiting.remedy else ""
        self._status.update(Text(f"waiting: {waiting.message}{remedy}"))

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
