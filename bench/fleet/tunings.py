"""1,000 jobs an hour of which 20% tune the hypernetwork of one base: one at a time, as before, and side by side.

    python -m bench.fleet.tunings --output bench/results/fleet_tunings.json --table bench/results/fleet_tunings.md

Each way runs in a separate installation of `bench.fleet` for --minutes: PostgreSQL, Redis and Celery workers are real,
and so are leases, heads and their compare-and-swap. The stages sleep for as long as they took in
bench/results/first_version.json, those of a tuning for as long as the tunings of bench/results/stream.jsonl took on a
worker with two cores. A judgement on a head that moved takes half as long as the first: the answers from before the
change are known.

The time lost is the time from the first claim of a job that tunes to its end, less that of its stages: waiting for the
slot and repeating stages before, repeated judgements now. Jobs that still wait at the end count with what they have
lost so far. The model computes the same event by event for 100 hours, with workers enough, and for judgements in
batches as well.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import select

from bench.fleet.__main__ import Installation, Sizes, running_installation
from bench.fleet.pipeline import BEFORE, MOVED, SLOT
from bench.fleet.side_by_side import BATCHES, Lengths, Outcome, behind_slot, in_batches, moved_on
from bench.fleet.waits import percentile
from bench.harness.command import RESULTS, asked_sizes, command_line
from bench.harness.page import made_on, met, table
from bench.harness.report import made_by, report
from bench.harness.services import missing
from onboard.domain.job import JobState
from onboard.pipeline.run import MOST_MOVES
from onboard.registry.bases import BaseRepository
from onboard.registry.tables import JobRow

PER_HOUR: Final = 1_000.0
TUNED_SHARE: Final = 0.2
WANTED_LOST_SECONDS: Final = 60.0  # at the 99th percentile
WANTED_GIVEN_UP: Final = 0.02  # of accepted tunings
_Way = Callable[[Sequence[float], Sequence[bool], Lengths], list[Outcome]]
_CORES: Final = 2  # of a worker; stream.jsonl has core seconds
_MODEL_HOURS: Final = 100


@dataclass(frozen=True)
class TuningSizes:
    """How much is measured.

    Args:
        minutes: of arrivals, each way.
        workers: Celery workers, a job each at a time.
        tasks, versions: that the registry holds before.
    """

    minutes: float = 20.0
    workers: int = 20
    tasks: int = 2_000
    versions: int = 200_000


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results; 1 if a target is missed."""
    options, sizes = asked_sizes(command_line(__doc__), TuningSizes(), arguments)
    if lacking := missing("postgres") or missing("redis-server"):
        print(f"skipped: {lacking} is not installed")
        return 0
    first = json.loads((RESULTS / "first_version.json").read_text(encoding="utf-8"))
    stages, accepted = tuned_stages(first["stages"], (RESULTS / "stream.jsonl").read_text(encoding="utf-8"))
    ways = {}
    for how in (SLOT, MOVED):
        with running_installation(Sizes(**asdict(sizes)), TuningInstallation) as installation:
            ways[how] = installation.measure_tunings(how, first["stages"], stages, accepted)
    words = "" if sizes == TuningSizes() else f" --minutes {sizes.minutes:g}"
    document = {
        **made_by(f"python -m bench.fleet.tunings{words}"), "sizes": asdict(sizes), "stages": stages,
        "accepted": accepted, "ways": ways, "model": modelled(stages, accepted),
    }  # fmt: skip
    return report({**document, "kept": all(reached for *_, reached in verdicts(document))}, options, page)


def tuned_stages(stages: Mapping[str, float], stream: str) -> tuple[dict[str, float], float]:
    """Return the stages of a job that tunes, in order, and the share of tunings that the guard accepted.

    Args:
        stages: seconds of a job that does not tune.
        stream: the rows of bench/results/stream.jsonl.
    """
    rows = [row for line in stream.splitlines() if (row := json.loads(line))["method"] == "guarded"]

    def seconds(*parts: str) -> float:
        of_rows = [float(sum(row["seconds"][part] for part in parts)) for row in rows]
        return round(statistics.median(of_rows) / _CORES, 1)

    before = {stage: taken for stage, taken in stages.items() if stage in BEFORE}
    after = {stage: taken for stage, taken in stages.items() if stage not in (*BEFORE, "tune")}
    tuned = {**before, "tune": seconds("tune", "folds"), "guard": seconds("guard"), **after}
    return tuned, round(statistics.mean(row["share"] > 0 for row in rows), 3)


class TuningInstallation(Installation):
    """Services with workers that are offered jobs of which some tune."""

    def measure_tunings(
        self, how: str, plain: dict[str, float], stages: dict[str, float], accepted: float
    ) -> dict[str, Any]:
        """Offer jobs; one at a time, tunings that still wait afterwards are not waited for."""

        def drawn(draw: random.Random) -> tuple[dict[str, float], dict[str, Any]] | None:
            if draw.random() >= TUNED_SHARE:
                return None
            tuning = {"how": how, "again": round(stages["guard"] / 2, 1), "accepted": draw.random() < accepted}
            return stages, tuning

        began = time.time()
        self._offer(PER_HOUR, 60 * self._sizes.minutes, plain, drawn)
        if how == MOVED:
            self._drain()
        return figures(self._rows(began), time.time(), self._head())

    def _rows(self, since: float) -> list[Mapping[str, Any]]:
        columns = (
            JobRow.created_at, JobRow.started_at, JobRow.finished_at, JobRow.state, JobRow.spec, JobRow.result,
        )  # fmt: skip
        with self._services.database.read() as session:
            rows = session.execute(select(*columns).where(JobRow.created_at >= since - 1).order_by(JobRow.number))
            return [dict(row._mapping) for row in rows]

    def _head(self) -> int:
        with self._services.database.read() as session:
            return BaseRepository(session).list()[0].head


def figures(jobs: Sequence[Mapping[str, Any]], now: float, head: int) -> dict[str, Any]:
    """Return what the jobs that tune lost to each other, and how long the others waited."""
    tuning = [job for job in jobs if "tuning" in job["spec"]["options"]]
    started = [job for job in tuning if job["started_at"] is not None]
    done = [job["result"]["tuning"] for job in tuning if job["state"] == JobState.SUCCEEDED]
    lost = [
        max(0.0, (job["finished_at"] or now) - job["started_at"] - sum(job["spec"]["options"]["sleep"].values()))
        for job in started
    ]
    waits = [(job["started_at"] or now) - job["created_at"] for job in jobs if "tuning" not in job["spec"]["options"]]
    given_up = sum(facts.get("given_up", False) for facts in done)
    return {
        "jobs": len(jobs),
        "failed": sum(job["state"] not in (JobState.SUCCEEDED, JobState.QUEUED, JobState.RUNNING) for job in jobs),
        "tunings": len(tuning),
        "unfinished": len(tuning) - len(done),
        "heads": head - 1,
        "given_up": given_up,
        "accepted": given_up + sum(facts["kept"] for facts in done),
        "judgements": round(statistics.mean(facts["judgements"] for facts in done), 2) if done else 0.0,
        "lost_seconds": _percentiles(lost),
        "plain_wait_seconds": _percentiles(waits),
    }


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {"p50": 0.0, "p99": 0.0}
    return {"p50": round(percentile(values, 0.5), 1), "p99": round(percentile(values, 0.99), 1)}


def modelled(stages: Mapping[str, float], accepted: float) -> dict[str, dict[str, Any]]:
    """Return the same figures of each way by the model, for one hour of arrivals at a time."""
    lengths = Lengths(
        before=sum(stages[stage] for stage in BEFORE if stage in stages),
        tune=stages["tune"], guard=stages["guard"], again=stages["guard"] / 2,
        after=sum(taken for stage, taken in stages.items() if stage not in (*BEFORE, "tune", "guard")),
    )  # fmt: skip
    ways: dict[str, _Way] = {
        SLOT: behind_slot, MOVED: partial(moved_on, most=MOST_MOVES), BATCHES: in_batches,
    }  # fmt: skip
    by_way = dict[str, dict[str, Any]]()
    for how, way in ways.items():
        draw, outcomes = random.Random(0), list[Outcome]()
        for _ in range(_MODEL_HOURS):
            arrivals, at = list[float](), 0.0
            while (at := at + draw.expovariate(TUNED_SHARE * PER_HOUR / 3600)) < 3600:
                arrivals.append(at)
            outcomes += way(arrivals, [draw.random() < accepted for _ in arrivals], lengths)
        given_up = sum(outcome.given_up for outcome in outcomes)
        by_way[how] = {
            "tunings": len(outcomes),
            "given_up": given_up,
            "accepted": given_up + sum(outcome.kept for outcome in outcomes),
            "judgements": round(statistics.mean(outcome.judgements for outcome in outcomes), 2),
            "lost_seconds": _percentiles([outcome.lost for outcome in outcomes]),
        }
    return by_way


def verdicts(document: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return each target, the measured value, and whether the target was reached."""
    way = document["ways"][MOVED]
    lost, given_up, accepted = way["lost_seconds"]["p99"], way["given_up"], way["accepted"]
    return [
        ("no job fails", f"{way['failed']} of {way['jobs']:,}", way["failed"] == 0),
        (
            f"99% of tunings lose at most {WANTED_LOST_SECONDS:g} s to others", f"{lost:g} s",
            lost <= WANTED_LOST_SECONDS,
        ),
        (
            f"at most {WANTED_GIVEN_UP:.0%} of accepted tunings are given up", f"{given_up} of {accepted}",
            given_up <= WANTED_GIVEN_UP * accepted,
        ),
        ("every tuning that was kept is a head", f"{way['heads']} heads", way["heads"] == accepted - given_up),
    ]  # fmt: skip


def page(document: Mapping[str, Any]) -> str:
    """The figures for people, in Markdown."""
    sizes, ways, model = document["sizes"], document["ways"], document["model"]
    stages = ", ".join(f"{stage} {seconds:g} s" for stage, seconds in document["stages"].items() if seconds)
    lines = [
        "# Many tunings an hour", "",
        f"{made_on(document)}. [Numbers](fleet_tunings.json). {PER_HOUR:,.0f} jobs an hour for {sizes['minutes']:g} "
        f"minutes, {TUNED_SHARE:.0%} of which tune the hypernetwork of one base. {sizes['workers']} Celery workers, "
        f"PostgreSQL with {sizes['tasks']:,} tasks and {sizes['versions']:,} versions, Redis. Stages of a job that "
        f"tunes sleep: {stages}. A judgement on a head that moved takes half of the guard's time. The guard accepts "
        f"{document['accepted']:.0%} of the steps.", "",
        *table("target | found | verdict", [(what, text, met(reached)) for what, text, reached in verdicts(document)]),
        "",
        *table(["", *ways], _measured(list(ways.values()))), "",
        "The time lost is what a job that tunes takes longer than its stages, from its first claim: waiting for the "
        "slot and repeated stages one at a time, repeated judgements side by side. Unfinished ones count with what "
        "they have lost so far.", "",
        f"By the model, {_MODEL_HOURS} separate hours with workers enough; batches are not built, and the guard "
        "accepts every sum of accepted steps there, which is too good:", "",
        *table(["", *model], _modelled(list(model.values()))),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _measured(ways: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [
        ["jobs", *(f"{way['jobs']:,}" for way in ways)],
        ["tunings", *(f"{way['tunings']:,}" for way in ways)],
        ["unfinished at the end of the arrivals", *(f"{way['unfinished']:,}" for way in ways)],
        *_modelled(ways)[1:],
        ["jobs that do not tune waited, median, s", *(f"{way['plain_wait_seconds']['p50']:g}" for way in ways)],
        ["jobs that do not tune waited, 99%, s", *(f"{way['plain_wait_seconds']['p99']:g}" for way in ways)],
    ]


def _modelled(ways: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    return [
        ["tunings", *(f"{way['tunings']:,}" for way in ways)],
        ["time lost, median, s", *(f"{way['lost_seconds']['p50']:g}" for way in ways)],
        ["time lost, 99%, s", *(f"{way['lost_seconds']['p99']:g}" for way in ways)],
        ["judgements of a tuning", *(f"{way['judgements']:g}" for way in ways)],
        ["accepted by the guard", *(f"{way['accepted']:,}" for way in ways)],
        ["given up, because the head moved too often", *(f"{way['given_up']:,}" for way in ways)],
    ]


if __name__ == "__main__":
    sys.exit(main())
