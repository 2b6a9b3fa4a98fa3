"""Following a job: live stages on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import typer

from cli.output import Document, emit, report_error, say
from onboard.contract.guard import refused_by_guard
from onboard.domain.job import BULK, EVENTS_AT_ONCE, JobState, job_failure
from onboard.errors import ConflictError, UnavailableError

if TYPE_CHECKING:
    from onboard.client.protocol import Service

_WAIT_SECONDS = 2.0  # how often it is asked why the job waits
_SILENT_SECONDS = 20.0  # after so long without news of a running job it is asked whether its worker is there
_WORKER_CHECK_SECONDS = 10.0
_AWAY_SECONDS = 1.0
_DOCUMENT = (
    "job", "state", "task", "version", "embedding_digest", "hypernetwork_version", "init", "metrics", "guard",
    "seconds",
)  # fmt: skip
_OF_FILES = ("job", "state", "task", "versions", "output", "files", "rows", "bad_rows", "shards", "seconds")


def wait_for(service: Service, job: str, as_json: bool) -> None:
    """Show the stages until the job has ended, then its result.

    Exits with 1 if it did not succeed, and with 4 if the guard refused the requested tuning: the version then has the
    embedding alone.
    """
    try:
        document = follow(service, job)
    except KeyboardInterrupt:
        say(f"job {job} continues: onboard jobs watch {job}, or: onboard jobs cancel {job}")
        raise typer.Exit(130) from None
    state = JobState(document["state"])
    if state is not JobState.SUCCEEDED:
        raise typer.Exit(report_error(job_failure(job, state, document["error"]), as_json))
    emit(result_document(document), as_json, lambda: _report(document))
    if refused_by_guard(document):
        raise typer.Exit(ConflictError.exit_code)


def result_document(job: Document) -> Document:
    """The document that `submit --wait --json` prints, of what `jobs show --json` prints."""
    options = (job.get("spec") or {}).get("options") or {}
    return {key: job.get(key) for key in (_OF_FILES if BULK in options else _DOCUMENT)}


def follow(service: Service, job: str) -> Document:
    """Print the job's events until it has ended, and return it. Reports and waits for unavailable services."""
    display = _Live() if sys.stderr.isatty() else _Plain()
    follower = _Follower(service, job)
    away = False
    with display:
        while True:
            try:
                if follower.step(display):
                    return service.job(job).document
            except UnavailableError as error:
                if not away:
                    say(f"{error.message} Waiting for it.")
                away = True
                time.sleep(_AWAY_SECONDS)
                continue
            if away:
                say("The connection is back.")
            away = False
            time.sleep(service.poll_seconds)


class _Follower:
    """Remembers what of a job was shown already."""

    def __init__(self, service: Service, job: str) -> None:
        self._service = service
        self._job = job
        self._seen = 0
        self._worker_at = self._wait_at = time.monotonic()

    def step(self, display: _Plain | _Live) -> bool:
        """Show new events, and make sure that there is a worker. Returns whether it ended. Raises UnavailableError."""
        news = self._service.job(self._job, self._seen).document
        for event in news["events"]:
            self._seen = event["id"]
            display.show(event)
        now = time.monotonic()
        if news["events"]:
            self._wait_at = now
        patience = _WAIT_SECONDS if news["state"] == JobState.QUEUED else _SILENT_SECONDS
        if not JobState(news["state"]).finished and now - self._wait_at > patience:
            self._wait_at = now
            if news["waiting"] is not None:
                display.wait(news["waiting"])
        if now - self._worker_at > _WORKER_CHECK_SECONDS:
            self._worker_at = now
            self._service.keep_served(news["queue"])
        return JobState(news["state"]).finished and len(news["events"]) < EVENTS_AT_ONCE


def event_line(event: Document) -> str:
    """One line of plain text for an event."""
    if event["numbers"].get("provisional"):
        return str(event["message"])
    error = event["numbers"].get("error")
    given = [(key, value) for key, value in event["numbers"].items() if key != "error" and value is not None]
    numbers = ", ".join(f"{key} {_short(value)}" for key, value in given)
    what: str = {
        "stage_started": f"{event['stage']}: started",
        "stage_finished": f"{event['stage']}: done in {event['seconds'] or 0:.1f} s",
    }.get(str(event["kind"]), str(event["message"]))
    line = f"{what}  ({numbers})" if numbers else what
    reason = " ".join(str(error[part]) for part in ("message", "remedy") if error.get(part)) if error else ""
    return f"{line}: {reason}" if reason else line


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        return "/".join(f"{number}" for number in value.values())
    return str(value)


class _Plain:
    """One line per event."""

    def __init__(self) -> None:
        self._remedy = ""

    def __enter__(self) -> _Plain:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, event: Document) -> None:
        say(event_line(event))

    def wait(self, waiting: Document) -> None:
        """A line only where somebody has to do something, and once: the figures change all the time."""
        remedy = waiting["remedy"]
        if remedy and remedy != self._remedy:
            say(f"waiting: {waiting['message']}\n  → {remedy}")
        self._remedy = remedy


class _Live:
    """A spinner with the present stage; finished stages stay as lines."""

    def __init__(self) -> None:
        from cli.console import CleanConsole

        self._console = CleanConsole(stderr=True)
        self._status = self._console.status("waiting for a worker")

    def __enter__(self) -> _Live:
        self._status.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def wait(self, waiting: Document) -> None:
        from rich.text import Text

        remedy = f"  → {waiting['remedy']}" if waiting["remedy"] else ""
        self._status.update(Text(f"waiting: {waiting['message']}{remedy}"))

    def show(self, event: Document) -> None:
        from rich.text import Text

        line = Text(event_line(event))
        ended = event["kind"] == "state" and event["message"] not in ("queued", "running")
        if event["kind"] == "stage_finished":
            self._console.print(Text("✓ ", style="green") + line)
        elif ended or event["numbers"].get("provisional"):
            self._console.print(line)
        else:
            self._status.update(line)


def _report(job: Document) -> Any:
    from onboard.report.terminal import render_text

    return render_text(job)
