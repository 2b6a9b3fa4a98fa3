"""Files answered by a fleet that is killed all the time: every row once, in order; and the cost of shards.

    python -m bench.bulk --rows 1000000 --workers 4 --kills 20 --rate-rows 2000

First a job over so many rows on PostgreSQL and Redis, with a base of random weights, so that it is the claims, leases,
fences and files that are tried, not the machine's arithmetic. Workers are killed with kill -9, parent and child at
once, when the job has done the next of so many equal parts; every other time it is the worker that runs the job. Each
is started again. Then the lines of all shards are read in their order. Second, with `mini`, the same rows by one
process: in shards, and by a plain loop over batches, one after the other, several times. Exits with 1 when a row is
lost, doubled or out of order.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench.chaos.fleet import Fleet, running
from bench.chaos.journal import Journal
from bench.harness.command import asked_sizes, command_line, command_of
from bench.harness.deployed import deployed
from bench.harness.page import VERDICTS, made_on, met, table
from bench.harness.report import made_by, report
from bench.harness.tiny_base import WORDS
from onboard.bases import find_base
from onboard.domain.bulk import ShardsStanding
from onboard.domain.job import Job, JobState
from onboard.hypernetworks.register import register_base
from onboard.registry.clock import read_clock
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services, open_services
from onboard.registry.shards import ShardRepository
from onboard.serving.bulk.answering import predict_files
from onboard.serving.bulk.asked import BulkQuestion
from onboard.serving.bulk.submit import submit_bulk
from onboard.settings import Settings

TASK: Final = "sst2"
FILES: Final = 4
ROUNDS: Final = 3
LEAST_SHARE: Final = 0.9  # of the plain loop's rate
TIMINGS: Final = {"lease_seconds": 10.0, "heartbeat_seconds": 2.0, "reconcile_seconds": 1.0}
_LOOK_SECONDS: Final = 0.5
_AT_ONCE: Final = 256  # rows of the plain loop's batches, as many as shards ask at once
_FEWEST_WORDS, _MOST_WORDS = 4, 16


@dataclass(frozen=True)
class Sizes:
    """What is done.

    Args:
        rows: of the job that is killed.
        workers: that share it.
        kills: how many of them are killed.
        rate_rows: of each round of the comparison with a plain loop.
        seed: of texts and kills.
        hours: after so long the job is given up.
    """

    rows: int = 1_000_000
    workers: int = 4
    kills: int = 20
    rate_rows: int = 2_000
    seed: int = 0
    hours: float = 2.0


@dataclass(frozen=True)
class Kill:
    """One kill -9.

    Args:
        rows_done: how far the job was.
        ran_the_job: whether that worker ran it; else it helped, or was just starting.
    """

    rows_done: int
    ran_the_job: bool


@dataclass(frozen=True)
class Found:
    """The lines of all shards, in their order.

    Args:
        lines: how many there are.
        lost, doubled: rows that have none, or more than one.
        misplaced: lines that follow one of a later row.
        unanswered: lines without a label.
    """

    lines: int
    lost: int
    doubled: int
    misplaced: int
    unanswered: int

    @property
    def whole(self) -> bool:
        """Whether every row is answered once and in order."""
        return not (self.lost or self.doubled or self.misplaced or self.unanswered)


def main(arguments: list[str] | None = None) -> int:
    """Kill, count, compare, print, and write the results."""
    parser = command_line(__doc__, "bulk")
    asked, sizes = asked_sizes(parser, Sizes(), arguments)
    words = [f"--{name.replace('_', '-')} {value}" for name, value in asdict(sizes).items() if name != "hours"]
    with tempfile.TemporaryDirectory() as made:
        killed = killed_job(sizes, Path(made))
        rates = compared(sizes, Path(made))
    document = {**made_by(command_of("bulk", words)), **asdict(sizes), **killed, "rates": rates}
    return report(document, asked, page)


def killed_job(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """The job, its kills, and the result."""
    source, output = folder / "in", folder / "out"
    write_rows(source, sizes)
    with deployed("postgres") as (settings, place):
        services = open_services(settings)
        register_base(services, find_base(settings.base))
        began = time.monotonic()
        job, _ = submit_bulk(services, [TASK], str(source), str(output), "default", {})
        journal = Journal(place / "journal.jsonl")
        fleet = Fleet(settings, place, journal, [0.0] * sizes.workers, TIMINGS, "onboard.pipeline.run")
        with running(fleet):
            kills = list(_kills(services, job, fleet, sizes))
        seconds = time.monotonic() - began
        ended = _job(services, job)
        services.close()
    counts = look_at(output, sizes.rows)
    return {
        "state": ended.state.value, "error": ended.error, "attempts": ended.attempt, "seconds": round(seconds, 1),
        "kills_done": [asdict(kill) for kill in kills], "found": asdict(counts),
        "kept": counts.whole and ended.state is JobState.SUCCEEDED and len(kills) == sizes.kills,
    }  # fmt: skip


def write_rows(folder: Path, sizes: Sizes) -> None:
    """So many short texts, numbered, in a few files."""
    rng, words = random.Random(sizes.seed), WORDS.split()
    folder.mkdir(parents=True)
    for file in range(FILES):
        with (folder / f"{file}.jsonl").open("w", encoding="utf-8") as stream:
            for number in range(file * sizes.rows // FILES, (file + 1) * sizes.rows // FILES):
                text = " ".join(rng.choices(words, k=rng.randint(_FEWEST_WORDS, _MOST_WORDS)))
                stream.write(json.dumps({"number": number, "text": text}) + "\n")


def _kills(services: Services, job: Job, fleet: Fleet, sizes: Sizes) -> Iterator[Kill]:
    """Kill until the job has ended, whenever it has done the next part."""
    rng, done = random.Random(sizes.seed), 0
    deadline = time.monotonic() + 3600 * sizes.hours
    while not (now := _job(services, job)).state.finished and time.monotonic() < deadline:
        fleet.tend()
        standing = _standing(services, job)
        rows_done = standing.rows_done if standing else 0
        if done < sizes.kills and rows_done >= (done + 1) * sizes.rows // (sizes.kills + 1):
            running_it = fleet.named(now.worker)
            others = [worker for worker in fleet.alive() if worker is not running_it]
            victim = running_it if running_it and done % 2 == 0 else rng.choice(others) if others else None
            if victim is not None:
                os.killpg(victim.process.pid, signal.SIGKILL)
                done += 1
                print(f"killed {done} of {sizes.kills} at {rows_done:,} rows", file=sys.stderr, flush=True)
                yield Kill(rows_done, victim is running_it)
        time.sleep(_LOOK_SECONDS)


def _job(services: Services, job: Job) -> Job:
    with services.database.read() as session:
        return JobRepository(session).get(job.id)


def _standing(services: Services, job: Job) -> ShardsStanding | None:
    with services.database.read() as session:
        return ShardRepository(session).standing(job.id, None, read_clock(session))


def look_at(output: Path, rows: int) -> Found:
    """Read what was written as whoever uses it would."""
    seen, lines, misplaced, unanswered, last = bytearray(rows), 0, 0, 0, -1
    doubled = 0
    for part in sorted(output.glob("part-*.jsonl")):
        with part.open(encoding="utf-8") as stream:
            for line in stream:
                row = json.loads(line)
                lines += 1
                unanswered += "label" not in row
                misplaced += row["number"] < last
                last = row["number"]
                doubled += seen[last]
                seen[last] = 1
    return Found(lines, rows - sum(seen), doubled, misplaced, unanswered)


def compared(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Rows a second of one process with `mini`: in shards, and by a plain loop; in turn."""
    from onboard.serving.predictor import Predictor

    source = folder / "rate"
    write_rows(source, Sizes(rows=sizes.rate_rows, seed=sizes.seed))
    settings = Settings(home=folder / "home", device="cpu", database_url="", broker_url="", artifact_url="")
    services = open_services(settings)
    predictor = Predictor(services)
    question = BulkQuestion((TASK,), (f"{TASK}@v1",))
    texts = [json.loads(line)["text"] for path in sorted(source.iterdir()) for line in path.open(encoding="utf-8")]
    rates: dict[str, list[float]] = {"shards": [], "loop": []}
    _loop(predictor, texts[:_AT_ONCE])
    for turn in range(ROUNDS):
        for arm in ("shards", "loop") if turn % 2 == 0 else ("loop", "shards"):
            began = time.perf_counter()
            if arm == "loop":
                _loop(predictor, texts)
            else:
                shutil.rmtree(folder / "rate-out", ignore_errors=True)
                predict_files(source, folder / "rate-out", question, predictor.predict)
            rates[arm].append(round(len(texts) / (time.perf_counter() - began), 1))
    services.close()
    return {**rates, "share": share_of(rates)}


def share_of(rates: dict[str, list[float]]) -> float:
    """The median over the rounds of how quick shards are compared with the loop that ran before or after them."""
    shares = [shards / loop for shards, loop in zip(rates["shards"], rates["loop"], strict=True)]
    return round(statistics.median(shares), 3)


def _loop(predictor: Any, texts: Sequence[str]) -> None:
    for first in range(0, len(texts), _AT_ONCE):
        predictor.predict([{"task": TASK, "ref": "v1", "text": text} for text in texts[first : first + _AT_ONCE]])


def page(document: dict[str, Any]) -> str:
    """The page."""
    counts, rates, kills = document["found"], document["rates"], document["kills_done"]
    ran = sum(kill["ran_the_job"] for kill in kills)
    wrong = counts["lost"] + counts["doubled"] + counts["misplaced"] + counts["unanswered"]
    lines = [
        "# A job over files with killed workers", "",
        f"{document['rows']:,} rows in {FILES} files, one job, {document['workers']} worker processes on PostgreSQL "
        f"and Redis, and kill -9 of a whole worker {len(kills)} times: {ran} times of the one that ran the job, else "
        "of one that helped. Each is started again. The base has random weights and is tiny: what is tried here is who "
        "claims, writes and goes on, not how fast a model is. Then every line of every shard is read, in order.", "",
        f"{made_on(document)}. [Numbers](bulk.json).", "",
        *table("rows | lines | lost | doubled | out of order | without an answer | attempts of the job | seconds", [[
            f"{document['rows']:,}", f"{counts['lines']:,}", counts["lost"], counts["doubled"], counts["misplaced"],
            counts["unanswered"], document["attempts"], f"{document['seconds']:,.0f}",
        ]]), "",
        "## Compared with a plain loop", "",
        f"`mini`, one process, one thread, {document['rate_rows']:,} rows, {ROUNDS} rounds in turn: files in, planned, "
        f"answered in shards and written; and a loop over texts in memory, {_AT_ONCE} at a time, whose answers go "
        "nowhere. The ratio counts: the machine has other work, too.", "",
        *table("way | rows a second, by round", [
            ["shards", ", ".join(map(str, rates["shards"]))],
            ["plain loop", ", ".join(map(str, rates["loop"]))],
            ["shards beside the loop", ", ".join(f"{shards / loop:.2f}" for shards, loop in zip(
                rates["shards"], rates["loop"], strict=True
            ))],
        ]), "",
        "## Verdicts", "",
        *table(VERDICTS, [
            [f"0 of {document['rows']:,} rows lost, doubled or out of order", wrong, met(document["kept"])],
            [
                f"one process at least {LEAST_SHARE} of the plain loop's rate (the median of the rounds)",
                f"{rates['share']:.2f}",
                met(rates["share"] >= LEAST_SHARE),
            ],
        ]), "",
    ]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
