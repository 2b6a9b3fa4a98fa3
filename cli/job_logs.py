"""`onboard jobs logs`: a job's events and, if it can be read here, its part of the worker's log."""

from __future__ import annotations

import time
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from cli.output import Document, emit, print_line, say
from onboard.domain.job import JobState

if TYPE_CHECKING:
    from onboard.client.protocol import Service


@dataclass(frozen=True, slots=True)
class LogLine:
    """An event of a job, or a line that a worker logged about it; `at` is ISO 8601 in UTC."""

    at: str
    attempt: int
    worker: str
    text: str
    document: dict[str, Any]
    is_event: bool

    def __str__(self) -> str:
        on = f" on {self.worker}" if self.worker else ""
        return f"{self.at}  attempt {self.attempt}{on}  {self.text}"


def show_logs(service: Service, name: str, *, attempt: int | None, follow: bool, as_json: bool) -> None:
    """Print events and lines in the order of time; with `follow` as they come, until the job has ended.

    Args:
        name: the job's id, or a task's name for its newest job.
        attempt: only this one; None means all.

    Raises:
        NotFoundError: no such job, or not so many attempts.
    """
    tell = say if as_json else print_line
    entries: list[LogLine] = []
    part = service.log(name, attempt, None)
    while True:
        new = _entries(part)
        entries += new
        if follow or not as_json:
            for entry in new:
                tell(str(entry))
        if not part["more"]:
            if not follow or JobState(part["state"]).finished:
                break
            time.sleep(service.poll_seconds)
        part = service.log(part["job"], attempt, part["next"])
    if as_json:
        emit(_document(part, entries), as_json, str)
    elif all(entry.is_event for entry in entries):
        _say_where_lines_are(part, entries)


def _entries(part: Document) -> list[LogLine]:
    """A part of a log in the order of time."""
    entries = [_entry_of_event(event) for event in part["events"]]
    entries += [_entry_of_line(line) for line in part["lines"]]
    return sorted(entries, key=attrgetter("at"))


def _entry_of_event(event: Document) -> LogLine:
    from cli.watch import event_line

    return LogLine(event["at"], event["attempt"], event["worker"] or "", event_line(event), event, is_event=True)


def _entry_of_line(line: dict[str, Any]) -> LogLine:
    trace = "\n" + line["trace"] if line.get("trace") else ""
    text = f"{line['level']} {line['logger']}: {line['message']}{trace}"
    return LogLine(line["time"], line.get("attempt", 0), line.get("worker", ""), text, line, is_event=False)


def _document(part: Document, entries: list[LogLine]) -> Document:
    return {
        "job": part["job"],
        "state": part["state"],
        "events": [entry.document for entry in entries if entry.is_event],
        "lines": [entry.document for entry in entries if not entry.is_event],
        "log": part["log"],
    }


def _say_where_lines_are(part: Document, entries: list[LogLine]) -> None:
    workers = sorted({entry.worker for entry in entries if entry.worker})
    if not workers:
        return
    looked = f"; {part['log']} has none" if part["log"] else ""
    say(f'log lines: on the standard error of {", ".join(workers)}, with "job": "{part["job"]}"{looked}')
