"""Odd messages in the broker: does a worker outlive them, count them, and work after them?

    python -m bench.bells --messages 100000 --output bench/results/bells.json --table bench/results/bells.md

Bells with parts changed, cut off or with a byte flipped, as whoever may write to the broker can leave them there, drawn
from a seed: in a folder of files and in a real Redis, for a real worker each. Afterwards it is given a real job. Exits
with 1 where a worker ended or began again, miscounted what it dropped, or did not do the job.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import redis

from bench.chaos.fleet import Fleet, running
from bench.chaos.journal import Journal
from bench.chaos.place import PLACES, absent, open_place
from bench.chaos.submitter import datasets, spec_of
from bench.harness.command import command_line
from bench.harness.page import made_on, table
from bench.harness.report import made_by, report
from bench.harness.services import wait_until
from bench.harness.tiny_base import make_tiny_base
from onboard.broker.bells import NotABellError, fresh_bell, require_bell
from onboard.broker.doorbell import CeleryDoorbell
from onboard.domain.job import JobState
from onboard.domain.worker import WorkerRecord, WorkerState
from onboard.jobs.submit import JobRequest, submit
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.workers import WorkerRepository
from onboard.settings import Settings

QUEUE: Final = "onboard.default"
PARTS: Final = ("body", "content-type", "content-encoding", "headers", "properties")
HEADERS: Final = (
    "task", "id", "timelimit", "eta", "expires", "shadow", "retries", "group", "chord", "callbacks", "errbacks",
    "root_id", "stamps", "stamped_headers", "compression", "ignore_result", "lang", "argsrepr", "origin", "x",
)  # fmt: skip
VALUES: Final[Sequence[Any]] = (
    None, True, 0, -1, 1e308, 10**30, "", "x", "\x00", "onboard.bell", "2999-01-01", "1999-01-01T00:00:00Z", "99:99",
    [], [1], [None, None], [0, 0], ["a", "b"], [[[]]], {}, {"a": {}}, {"__type__": "datetime", "__value__": "x"},
)  # fmt: skip
_NAMES: Final = {"sqlite": "files", "postgres": "Redis"}
_BATCH: Final = 500
_BELLS: Final = 0.03  # share of the messages that are bells all the same which are put there
_TIMINGS: Final = {"deaf_seconds": 600.0}  # nothing that deafens is mended meanwhile
_SECONDS: Final = 300.0  # for a worker to start, a batch to be taken, a job to end


def main(arguments: list[str] | None = None) -> int:
    """Put the messages there, look, print, and write the results."""
    parser = command_line(__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="at each place")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    places = {}
    with tempfile.TemporaryDirectory() as folder:
        base = make_tiny_base(Path(folder) / "base").folder
        for name in PLACES:
            if lacking := absent(name):
                print(f"skipped: {lacking} is not installed")
                continue
            place = Path(folder) / name
            place.mkdir()
            with open_place(name, place, base) as opened:
                places[name] = measure(opened.direct, place, asked.messages, asked.seed)
            print(f"{_NAMES[name]}: {places[name]}", flush=True)
    document = {
        **made_by(f"python -m bench.bells --messages {asked.messages} --seed {asked.seed}"),
        "places": places,
        "kept": all(figures["faults"] == [] for figures in places.values()),
    }
    return report(document, asked, page)


def measure(settings: Settings, folder: Path, count: int, seed: int) -> dict[str, Any]:
    """The result of one worker and of so many messages."""
    chance = random.Random(seed)
    fleet = Fleet(settings, folder, Journal(folder / "journal.jsonl"), timings=_TIMINGS)
    with closing(open_services(settings)) as services, running(fleet):
        (worker,) = fleet.alive()
        wait_until(lambda: _row(services, worker.name).state is WorkerState.RUNNING, _SECONDS, "the worker to be ready")
        pid, child, started, dropped = _row(services, worker.name).pid, worker.child(), time.monotonic(), 0
        for begun in range(0, count, _BATCH):
            batch = list(messages(chance, min(_BATCH, count - begun)))
            dropped += sum(not is_bell(raw) for raw in batch)
            put(settings, batch)
            if not worker.alive:
                break
        seconds = time.monotonic() - started
        after = _job(services, settings, folder) if worker.alive else "not tried"
        row = _row(services, worker.name)
        counted = _counted(services, worker.name, dropped)
        holds_by_fault = {
            "the worker ended": worker.alive and row.pid == pid,
            "its process was replaced": worker.child() == child,
            "it turned deaf and began anew": row.facts.get("renewals") == 0,
            f"it counted {counted}": counted == dropped,
            f"the job after them is {after}": after == JobState.SUCCEEDED,
        }
    return {
        "messages": count, "no_bells": dropped, "dropped": counted, "bells": count - dropped,
        "seconds": round(seconds, 1), "job_after_them": str(after),
        "faults": [fault for fault, holds in holds_by_fault.items() if not holds],
    }  # fmt: skip


def odd_message(chance: random.Random) -> bytes:
    """A bell with a part or more changed, cut, or with a byte flipped."""
    bell: Any = fresh_bell()
    for _ in range(1 + chance.randrange(3)):
        inner = [part for part in (bell.get("headers"), bell.get("properties")) if isinstance(part, dict)]
        part = chance.choice([bell, *inner, *inner])
        part[chance.choice(PARTS if part is bell else HEADERS)] = deepcopy(chance.choice(VALUES))
    raw = bytearray(json.dumps(bell).encode())
    if chance.random() < 0.2:
        raw = raw[: 1 + chance.randrange(len(raw))]
    if chance.random() < 0.2:
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return bytes(raw)


def messages(chance: random.Random, count: int) -> Iterator[bytes]:
    """So many of them. Few are left bells, for each is answered by a look at the database."""
    while count:
        raw = odd_message(chance)
        if not is_bell(raw) or chance.random() < _BELLS:
            yield raw
            count -= 1


def is_bell(raw: bytes) -> bool:
    """Whether it is to be answered."""
    try:
        require_bell(raw)
    except NotABellError:
        return False
    return True


def put(settings: Settings, batch: Sequence[bytes]) -> None:
    """Into the broker, and wait until all have been taken."""
    if settings.resolved_broker_url.startswith("redis"):
        with redis.Redis.from_url(settings.resolved_broker_url) as client:
            client.lpush(QUEUE, *batch)
            wait_until(lambda: not client.llen(QUEUE), _SECONDS, "the messages to be taken")
        return
    folder = settings.resolved_home / "broker"
    for number, raw in enumerate(batch):
        aside = folder / f".{uuid.uuid4().hex}"
        aside.write_bytes(raw)
        aside.rename(folder / f"{number:015d}_x.{QUEUE}.msg")
    wait_until(lambda: not list(folder.glob(f"[!.]*{QUEUE}.msg")), _SECONDS, "the messages to be taken")


def _row(services: Services, name: str) -> WorkerRecord:
    def look() -> WorkerRecord | None:
        with services.database.read() as session:
            rows = WorkerRepository(session).list(include_stopped=True)
        return next((row for row in rows if row.name == name), None)

    row: WorkerRecord = wait_until(look, _SECONDS, f"worker {name}")
    return row


def _counted(services: Services, name: str, dropped: int) -> int:
    """The state in the worker's row, as soon as it is right; else what it tells in the end."""
    for _ in range(60):
        if _row(services, name).facts["dropped_messages"] == dropped:
            break
        time.sleep(0.5)
    return int(_row(services, name).facts["dropped_messages"])


def _job(services: Services, settings: Settings, folder: Path) -> JobState:
    """How a real job ends."""
    request = JobRequest(datasets(folder)[0], spec_of(settings.base, 0))
    job, _ = submit(services, CeleryDoorbell(settings), request)

    def ended() -> JobState | None:
        with services.database.read() as session:
            state = JobRepository(session).get(job.id).state
        return state if state.finished else None

    state: JobState = wait_until(ended, _SECONDS, "the job's end")
    return state


def page(document: Mapping[str, Any]) -> str:
    """The numbers for people, in Markdown."""
    places = document["places"]
    head = "broker | messages | no bells | dropped and counted | bells, answered | seconds | the job after them"
    rows = (
        (_NAMES[name], *(f"{figures[key]:,}" for key in ("messages", "no_bells", "dropped", "bells")),
         f"{figures['seconds']:.0f}", figures["job_after_them"])
        for name, figures in places.items()
    )  # fmt: skip
    faulty = [f"- {_NAMES[name]}: {fault}" for name, figures in places.items() for fault in figures["faults"]]
    lines = [
        "# Odd messages in the broker",
        "",
        "Whoever may write to the broker can leave anything there. Bells with parts changed, cut off or with a byte "
        "flipped are put before a real worker that is left alone with them: it must neither exit, nor restart, nor "
        "become unresponsive; it counts invalid messages, and runs a real job afterwards.",
        "",
        f"{made_on(document)}. [Numbers](bells.json).",
        "",
        *table(head, rows),
        "",
        *(["No worker ended, none turned deaf, none miscounted."] if document["kept"] else faulty),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
