"""What `onboard jobs logs` shows: a job's events and, where it can be read from here, its part of the worker's log."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.output import emit, say

if TYPE_CHECKING:
    from onboard.domain.job import Job, JobEvent
    from onboard.services import Services

_POLL_SECONDS = 0.5
_PAGE = 1000  # events that are read at once
_ALWAYS = {"time", "level", "logger", "message"}  # what every line of a worker has


@dataclass(frozen=True, slots=True)
class Entry:
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


def show_logs(services: Services, job: Job, *, attempt: int | None, follow: bool, as_json: bool) -> None:
    """Print events and lines in the order of time; with `follow` as they come, until the job has ended.

    Args:
        attempt: only this one; None means all.
    """
    reader = _Reader(services, job.id, attempt)
    tell = say if as_json else _print
    entries = []
    while True:
        job = _present(services, job)  # looked at first: what it did before it ended is read after that
        entries += (new := reader.read())
        if follow or not as_json:
            for entry in new:
                tell(str(entry))
        if not follow or job.state.finished:
            break
        time.sleep(_POLL_SECONDS)
    if as_json:
        emit(_document(job, entries, reader.file), as_json, str)
    elif all(entry.is_event for entry in entries):
        _say_where_lines_are(job, entries, reader.file)


class _Reader:
    """Reads what is new about a job, again and again."""

    def __init__(self, services: Services, job_id: str, attempt: int | None) -> None:
        from workers.logs import full_log_file, log_file

        self._services = services
        self._job_id = job_id
        self._attempt = attempt
        self._seen = 0
        self._workers: dict[int, str] = {}
        # a deployment with servers has workers on many machines, whose logs are kept by whoever started them
        home = services.settings.resolved_home if services.settings.embedded else None
        self.file = home and log_file(home)
        self._tails = [_Tail(file(home), job_id) for file in (full_log_file, log_file)] if home else []

    def read(self) -> list[Entry]:
        """What is new since the last call, in the order of time."""
        found = [_entry_of_event(event, self._worker(event)) for event in self._events()]
        found += [_entry_of_line(line) for tail in self._tails for line in tail.read()]
        self._tails = self._tails[-1:]  # the file that was full is not written to any more
        return sorted((each for each in found if self._attempt in (None, each.attempt)), key=attrgetter("at"))

    def _events(self) -> Iterator[JobEvent]:
        from onboard.registry.events import EventRepository

        more = True
        while more:
            with self._services.database.read() as session:
                page = EventRepository(session).list(self._job_id, since=self._seen, limit=_PAGE)
            for event in page:
                self._seen = event.id
                yield event
            more = len(page) == _PAGE

    def _worker(self, event: JobEvent) -> str:
        if "worker" in event.numbers:  # said by the event that began the attempt
            self._workers[event.attempt] = event.numbers["worker"]
        return self._workers.get(event.attempt, "")


class _Tail:
    """The lines of a file about one job, as far as they are written. Lines that are not JSON are passed over."""

    def __init__(self, file: Path, job_id: str) -> None:
        self._file = file
        self._job_id = job_id
        self._position = 0

    def read(self) -> Iterator[dict[str, Any]]:
        try:
            stream = self._file.open("rb")
        except FileNotFoundError:
            return
        with stream:
            if os.fstat(stream.fileno()).st_size < self._position:  # it was full, and is another file now
                self._position = 0
            stream.seek(self._position)
            for line in stream:
                if not line.endswith(b"\n"):  # someone is writing it
                    return
                self._position += len(line)
                if (document := self._about_job(line)) is not None:
                    yield document

    def _about_job(self, line: bytes) -> dict[str, Any] | None:
        if self._job_id.encode() not in line:
            return None
        try:
            document = json.loads(line)
        except ValueError:
            return None
        is_ours = isinstance(document, dict) and document.keys() >= _ALWAYS and document.get("job") == self._job_id
        return document if is_ours else None


def _entry_of_event(event: JobEvent, worker: str) -> Entry:
    from cli.watch import event_line

    document = {**event.to_json(), "worker": worker or None}
    return Entry(document["at"], event.attempt, worker, event_line(event), document, is_event=True)


def _entry_of_line(line: dict[str, Any]) -> Entry:
    trace = "\n" + line["trace"] if line.get("trace") else ""
    text = f"{line['level']} {line['logger']}: {line['message']}{trace}"
    return Entry(line["time"], line.get("attempt", 0), line.get("worker", ""), text, line, is_event=False)


def _present(services: Services, job: Job) -> Job:
    from onboard.registry.jobs import JobRepository

    with services.database.read() as session:
        return JobRepository(session).get(job.id)


def _document(job: Job, entries: list[Entry], file: Path | None) -> dict[str, Any]:
    return {
        "job": job.id,
        "state": job.state.value,
        "events": [entry.document for entry in entries if entry.is_event],
        "lines": [entry.document for entry in entries if not entry.is_event],
        "log": str(file) if file else None,
    }


def _say_where_lines_are(job: Job, entries: list[Entry], file: Path | None) -> None:
    workers = sorted({entry.worker for entry in entries if entry.worker})
    if not workers:
        return
    looked = f"; {file} has none" if file else ""
    say(f'log lines: on the standard error of {", ".join(workers)}, with "job": "{job.id}"{looked}')


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
