"""The running and waiting jobs, and the lines of `jobs show` about one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from cli.columns import Columns
from cli.live import keep_looking
from cli.workers import attempt_text, attempts_text, stage_text, time_left
from onboard.domain.moment import from_iso, seconds_text

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.output import Document
    from onboard.client.protocol import Service


_MOST_QUEUED: Final = 20


def watch_open_jobs(service: Service, as_json: bool, interval: float) -> None:
    """Show all open jobs repeatedly until Ctrl-C."""
    keep_looking(lambda: service.open_jobs(_MOST_QUEUED), _rendered, as_json, interval)


def waiting_lines(waiting: dict[str, Any]) -> list[str]:
    """The reason why a job waits, and the remedy, as lines of text."""
    return [f"Waits: {waiting['message']}", *([f"  → {waiting['remedy']}"] if waiting["remedy"] else [])]


def running_lines(running: dict[str, Any]) -> list[str]:
    """The worker of a job, its progress and its remaining time, as lines of text."""
    age = running["heartbeat_age_seconds"]
    host = f" on {running['host']}" if running["host"] else ""
    beat = f", heartbeat {seconds_text(age)} ago" if age is not None else ", which is gone"
    note = f": {running['note']}" if running["note"] else ""
    lines = [
        f"Worker: {running['worker'] or 'a worker'}{host}{beat}",
        f"Stage: {stage_text(running)}, {attempt_text(running)}{note}",
        f"Time left: {time_left(running)} ({running['left_basis']})",
    ]
    if running["lease_left_seconds"] <= 0:
        lines.append("Its lease ran out: the next free worker takes it over.")
    return lines


def _rendered(seen: Document) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    columns = Columns(
        "job", "task", "queue", "state", "attempt", "worker", "progress", "time left", folded=("progress",)
    )
    for job in seen["running"]:
        columns.add(
            job["job"], job["task"], job["queue"], "running", attempts_text(job["attempt"], job["max_attempts"]),
            job["worker"] or "", (stage_text(job), job["note"]), time_left(job),
        )  # fmt: skip
    for job in seen["queued"]:
        columns.add(
            job["job"], job["task"], job["queue"], "queued", attempts_text(job["attempt"], job["max_attempts"]),
            "", _wait(seen, job), "",
        )  # fmt: skip
    running, queued = len(seen["running"]), seen["queued_in_all"]
    more = queued - len(seen["queued"])
    counted = f"{running:,} running, {queued:,} queued"
    return Group(Text(f"{counted}; {more:,} of them not shown" if more > 0 else counted), columns)


def _wait(seen: Document, job: Document) -> str:
    if job["retry_at"] is not None:
        return f"tries again in {seconds_text(from_iso(job['retry_at']) - from_iso(seen['at']))}"
    waited = f"waits for {seconds_text(job['waited_seconds'])}"
    return f"{waited}, {job['ahead']:,} ahead" if job["ahead"] else waited
