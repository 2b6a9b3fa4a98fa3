"""Use case: the log of a job: its events and, if readable from here, the lines that its worker logged about it.

It is read in parts; each names the start of the next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onboard.contract.jobs import LoggedEvent
from onboard.domain.job import EVENTS_AT_ONCE, Job, JobEvent
from onboard.errors import InputError, NotFoundError
from onboard.jobs.control import find_job
from onboard.registry.database import Database
from onboard.registry.events import EventRepository

MOST_CURSOR_CHARACTERS: Final = 20_000
PART_BYTES: Final = 2**20  # maximum bytes per part of the lines about the job in each file
_ALWAYS: Final = frozenset({"time", "level", "logger", "message"})  # fields of every line of a worker


@dataclass(slots=True)
class LogCursor:
    """A position in a log.

    Args:
        event: id of the last event.
        offsets: bytes read of each file; None for a file that is finished.
        workers: worker of each attempt so far, by the attempt as text.
    """

    event: int = 0
    offsets: list[int | None] = field(default_factory=list)
    workers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, cursor: str | None, files: int) -> LogCursor:
        """Parse the output of `str`; None is the beginning of `files` files. Raises InputError."""
        if cursor is None:
            return cls(offsets=[0] * files)
        try:
            event, offsets, workers = json.loads(cursor)
            place = cls(
                _count(event), [offset if offset is None else _count(offset) for offset in offsets], dict(workers)
            )
        except (ValueError, TypeError, RecursionError) as error:
            raise _wrong_cursor() from error
        if len(place.offsets) != files or not all(isinstance(worker, str) for worker in place.workers.values()):
            raise _wrong_cursor()
        return place

    def __str__(self) -> str:
        return json.dumps([self.event, self.offsets, self.workers], separators=(",", ":"))


def read_log(
    database: Database, files: Sequence[Path], name: str, attempt: int | None = None, cursor: str | None = None
) -> dict[str, Any]:
    """Return a part of a job's log: `{"job", "state", "events", "lines", "log", "next", "more"}`.

    Args:
        files: logs of workers on this machine; only the last one is still written.
        name: the job's id, or a task's name for its newest job.
        attempt: only this attempt; None means all.
        cursor: `next` of the previous part; None for the first.

    Raises:
        NotFoundError: the job does not exist or has fewer attempts.
        InputError: the cursor is invalid.
    """
    place = LogCursor.parse(cursor, len(files))
    job = find_job(database, name)  # read its state first: all events from before its end are read after that
    _require_attempt(job, attempt)
    events, more = _events(database, job.id, place)
    lines = []
    for number, file in enumerate(files):
        tail = _Tail(file, job.id, place.offsets[number])
        lines += [line for line in tail.read() if attempt in (None, line.get("attempt", 0))]
        more = more or tail.more
        full = number < len(files) - 1  # the file is no longer written
        place.offsets[number] = None if full and not tail.more else tail.offset
    return {
        "job": job.id,
        "state": job.state.value,
        "events": [event for event in events if attempt in (None, event["attempt"])],
        "lines": lines,
        "log": str(files[-1]) if files else None,
        "next": str(place),
        "more": more,
    }


def _require_attempt(job: Job, attempt: int | None) -> None:
    if attempt is not None and attempt > job.attempt:
        raise NotFoundError("unknown-attempt", attempt=attempt, job=job.id, attempts=job.attempt)


def _events(database: Database, job: str, place: LogCursor) -> tuple[list[dict[str, Any]], bool]:
    with database.read() as session:
        page = EventRepository(session).list(job, place.event, EVENTS_AT_ONCE)
    return [_event(event, place) for event in page], len(page) == EVENTS_AT_ONCE


def _event(event: JobEvent, place: LogCursor) -> dict[str, Any]:
    place.event = event.id
    if "worker" in event.numbers:  # the event that began the attempt contains it
        place.workers[str(event.attempt)] = event.numbers["worker"]
    return LoggedEvent.of(event, worker=place.workers.get(str(event.attempt))).to_json()


class _Tail:
    """The complete lines of a file about one job after `offset`; other lines are skipped."""

    def __init__(self, file: Path, job: str, offset: int | None) -> None:
        self._file = file
        self._job = job
        self.offset = offset
        self.more = False

    def read(self) -> Iterator[dict[str, Any]]:
        if self.offset is None:
            return
        try:
            stream = self._file.open("rb")
        except FileNotFoundError:
            return
        given_bytes = 0
        with stream:
            if os.fstat(stream.fileno()).st_size < self.offset:  # the file was rotated
                self.offset = 0
            stream.seek(self.offset)
            for line in stream:
                if not line.endswith(b"\n"):  # someone is writing it
                    return
                if given_bytes >= PART_BYTES:
                    self.more = True
                    return
                self.offset += len(line)
                if (document := self._about_job(line)) is not None:
                    given_bytes += len(line)
                    yield document

    def _about_job(self, line: bytes) -> dict[str, Any] | None:
        if self._job.encode() not in line:
            return None
        try:
            document = json.loads(line)
        except ValueError:
            return None
        is_ours = isinstance(document, dict) and document.keys() >= _ALWAYS and document.get("job") == self._job
        return document if is_ours else None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(value)
    return value


def _wrong_cursor() -> InputError:
    return InputError("log-cursor-invalid", field="cursor")
