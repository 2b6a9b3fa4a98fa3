"""The measurement of many tunings an hour: its model, figures and verdicts, and the jobs that sleep and move heads."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from bench.fleet import __main__ as fleet
from bench.fleet import pipeline, tunings
from bench.fleet.side_by_side import BATCHES, Lengths, Outcome, behind_slot, in_batches, moved_on
from onboard.domain.job import Job, JobState
from onboard.registry.bases import BaseRepository
from onboard.registry.events import EventRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services
from onboard.registry.tables import JobRow
from workers.shell import work

LENGTHS = Lengths(before=2.0, tune=10.0, guard=4.0, again=2.0, after=1.0)
KEPT, REFUSED = Outcome(0.0, 1, kept=True), Outcome(0.0, 1, kept=False)
STAGES = {"check": 1.0, "probe": 0.5, "train": 0.5, "tune": 10.0, "guard": 4.0, "evaluate": 1.0}


@pytest.mark.parametrize(
    ("arrivals", "accepted", "outcomes"),
    [
        ([0.0, 100.0], [True, True], [KEPT, KEPT]),
        ([0.0, 1.0], [False, False], [REFUSED, Outcome(14.0, 1, kept=False)]),
        ([0.0, 1.0], [True, True], [KEPT, Outcome(16.0, 1, kept=True)]),  # and repeats what it did before
    ],
)
def test_behind_the_slot_the_second_waits_for_the_first(
    arrivals: list[float], accepted: list[bool], outcomes: list[Outcome]
) -> None:
    assert behind_slot(arrivals, accepted, LENGTHS) == outcomes


@pytest.mark.parametrize(
    ("arrivals", "accepted", "most", "outcomes"),
    [
        ([0.0, 100.0], [True, True], 1, [KEPT, KEPT]),
        ([0.0, 1.0], [True, False], 1, [KEPT, REFUSED]),
        ([0.0, 1.0], [True, True], 1, [KEPT, Outcome(3.0, 2, kept=True)]),
        ([0.0, 1.0], [True, True], 0, [KEPT, Outcome(0.0, 1, kept=False, given_up=True)]),
        ([0.0, 6.0], [True, True], 0, [KEPT, KEPT]),  # the first was published before the second was judged
        ([0.0, 1.0, 2.0], [True] * 3, 2, [KEPT, Outcome(3.0, 2, kept=True), Outcome(6.0, 3, kept=True)]),
    ],
)
def test_side_by_side_who_was_judged_on_a_head_that_moved_is_judged_again(
    arrivals: list[float], accepted: list[bool], most: int, outcomes: list[Outcome]
) -> None:
    assert moved_on(arrivals, accepted, LENGTHS, most) == outcomes


@pytest.mark.parametrize(
    ("arrivals", "accepted", "outcomes"),
    [
        ([0.0, 1.0], [True, True], [KEPT, Outcome(3.0, 2, kept=True)]),
        ([0.0, 1.0, 2.0], [True] * 3, [KEPT, Outcome(3.0, 2, kept=True), Outcome(5.0, 2, kept=True)]),
        ([0.0, 1.0, 2.0, 3.0], [True, True, True, False], [KEPT, Outcome(3.0, 2, kept=True), Outcome(5.0, 2, kept=True),
                                                           REFUSED]),
    ],
)  # fmt: skip
def test_in_batches_all_that_wait_are_judged_together(
    arrivals: list[float], accepted: list[bool], outcomes: list[Outcome]
) -> None:
    assert in_batches(arrivals, accepted, LENGTHS) == outcomes


def test_stages_of_a_tuning_are_those_of_the_stream_on_two_cores() -> None:
    row = {"method": "guarded", "share": 0.5, "seconds": {"tune": 20.0, "folds": 80.0, "guard": 40.0}}
    lines = [row, {**row, "share": 0.0}, {"method": "frozen", "seconds": {}}]
    stages, accepted = tunings.tuned_stages(
        {"check": 1.0, "probe": 5.0, "train": 3.0, "tune": 1.7, "evaluate": 0.5}, "\n".join(map(json.dumps, lines))
    )
    assert list(stages.items()) == [
        ("check", 1.0), ("probe", 5.0), ("train", 3.0), ("tune", 50.0), ("guard", 20.0), ("evaluate", 0.5),
    ]  # fmt: skip
    assert accepted == 0.5


def document() -> dict[str, Any]:
    def job(state: JobState, *, finished: float | None, **tuning: Any) -> dict[str, Any]:
        options = {"sleep": STAGES, **({"tuning": {}} if tuning else {})}
        result = {"tuning": tuning} if state is JobState.SUCCEEDED else None
        return {
            "created_at": 0.0, "started_at": 1.0, "finished_at": finished, "state": state, "spec": {"options": options},
            "result": result,
        }  # fmt: skip

    jobs = [
        job(JobState.SUCCEEDED, finished=18.0),
        *[job(JobState.SUCCEEDED, finished=18.0, judgements=1, kept=True)] * 49,
        job(JobState.SUCCEEDED, finished=38.0, judgements=3, kept=False, given_up=True),
    ]
    way = tunings.figures(jobs, 60.0, 50)
    waiting = tunings.figures([*jobs, job(JobState.QUEUED, finished=None, judgements=1)], 118.0, 50)
    return {
        "command": "python -m bench.fleet.tunings", "machine": {"cores": 2, "processor": "a processor"},
        "sizes": {"minutes": 20.0, "workers": 20, "tasks": 2000, "versions": 200_000}, "stages": STAGES,
        "accepted": 0.467, "ways": {pipeline.SLOT: waiting, pipeline.MOVED: way},
        "model": {how: {**way, "tunings": 100} for how in (pipeline.SLOT, pipeline.MOVED, BATCHES)},
    }  # fmt: skip


def test_what_jobs_lose_to_each_other_is_what_they_take_longer_than_their_stages() -> None:
    waiting, way = document()["ways"].values()
    assert way == {
        "jobs": 51, "failed": 0, "tunings": 50, "unfinished": 0, "heads": 49, "given_up": 1, "accepted": 50,
        "judgements": 1.04, "lost_seconds": {"p50": 0.0, "p99": 20.0}, "plain_wait_seconds": {"p50": 1.0, "p99": 1.0},
    }  # fmt: skip
    assert (waiting["unfinished"], waiting["lost_seconds"]["p99"]) == (1, 100.0)


@pytest.mark.parametrize(
    ("key", "figure", "missed"),
    [
        ("failed", 1, "no job fails"),
        ("lost_seconds", {"p50": 0.0, "p99": 60.1}, "lose at most 60 s"),
        ("given_up", 2, "given up"),
        ("heads", 48, "is a head"),
    ],
)
def test_each_target_can_be_missed(key: str, figure: object, missed: str) -> None:
    assert all(reached for *_, reached in tunings.verdicts(document()))
    worse = copy.deepcopy(document())
    worse["ways"][pipeline.MOVED][key] = figure
    failed = [target for target, _, reached in tunings.verdicts(worse) if not reached]
    assert missed in failed[0]
    assert "**not met**" in tunings.page(worse)


def test_the_page_compares_the_ways_and_the_model() -> None:
    text = tunings.page(document())
    assert "| time lost, 99%, s | 100 | 20 |" in text
    assert "| time lost, 99%, s | 20 | 20 | 20 |" in text
    assert "tune 10 s, guard 4 s" in text


def test_the_model_says_what_a_slot_costs_and_what_remains_of_that() -> None:
    model = tunings.modelled(STAGES, 0.5)
    assert model[pipeline.SLOT]["lost_seconds"]["p50"] > 10
    assert model[pipeline.MOVED]["lost_seconds"]["p50"] == 0
    assert model[pipeline.MOVED]["lost_seconds"]["p99"] <= 10


@pytest.fixture
def installation(
    tiny_services: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tunings.TuningInstallation:
    monkeypatch.setattr(pipeline, "_sleep", lambda *_: None)
    made = tunings.TuningInstallation(tiny_services, fleet.Sizes(tasks=2, versions=4), fleet._checked(tmp_path), 1)
    made.fill()
    return made


def submitted(installation: tunings.TuningInstallation, how: str, task: str, *, accepted: bool = True) -> str:
    return installation._submit(task, "somebody", STAGES, {"how": how, "again": 2.0, "accepted": accepted})


def worked(services: Services, meanwhile: Callable[[Job], object] = lambda _: None) -> tuple[JobState, dict[str, Any]]:
    """The next job, run by a worker; `meanwhile` is called once, when it has been judged."""
    left = [meanwhile]

    def run(job: Job, services: Services, progress: Any) -> None:
        finished = progress.stage_finished

        def hooked(stage: Any, *rest: Any) -> None:
            finished(stage, *rest)
            if stage.value == "guard" and left:
                left.pop()(job)

        progress.stage_finished = hooked
        pipeline.run(job, services, progress)

    done = work(services, "w", ["default"], run)
    assert done is not None
    return done.state, (done.result or {}).get("tuning", {})


def moved(services: Services) -> None:
    """Another job moves the head."""
    with services.database.write() as session:
        bases = BaseRepository(session)
        base = bases.list()[0]
        first = bases.hypernetwork(base.digest, 1)
        bases.advance(first, expected_head=base.head)


def head(services: Services) -> int:
    with services.database.read() as session:
        return BaseRepository(session).list()[0].head


@pytest.mark.parametrize("how", [pipeline.SLOT, pipeline.MOVED])
@pytest.mark.parametrize("accepted", [True, False])
def test_a_job_that_tunes_moves_the_head_if_the_guard_accepts(
    installation: tunings.TuningInstallation, tiny_services: Services, how: str, accepted: bool
) -> None:
    submitted(installation, how, "new", accepted=accepted)
    assert worked(tiny_services) == (JobState.SUCCEEDED, {"judgements": 1, "kept": accepted})
    assert head(tiny_services) == (2 if accepted else 1)
    assert installation._head() == head(tiny_services)
    (row,) = [row for row in installation._rows(0.0) if row["state"] == JobState.SUCCEEDED]
    assert tunings.figures([row], 0.0, head(tiny_services))["accepted"] == accepted


def test_side_by_side_a_job_whose_head_moved_is_judged_again_until_it_is_given_up(
    installation: tunings.TuningInstallation, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(installation, pipeline.MOVED, "new")
    assert worked(tiny_services, lambda _: moved(tiny_services))[1] == {"judgements": 2, "kept": True}
    assert head(tiny_services) == 3
    monkeypatch.setattr(pipeline, "MOST_MOVES", 0)
    submitted(installation, pipeline.MOVED, "next")
    assert worked(tiny_services, lambda _: moved(tiny_services)) == (
        JobState.SUCCEEDED, {"judgements": 1, "kept": False, "given_up": True},
    )  # fmt: skip
    assert head(tiny_services) == 4


@pytest.mark.parametrize("head_moved", [True, False])
def test_behind_the_slot_a_job_waits_in_its_queue_and_repeats_its_first_stages_if_the_head_moved(
    installation: tunings.TuningInstallation, tiny_services: Services, head_moved: bool
) -> None:
    job = submitted(installation, pipeline.SLOT, "new")
    with tiny_services.database.write() as session:
        slot = f"tuning {BaseRepository(session).list()[0].digest}"
        assert LeaseRepository(session).take(slot, "another", 60)
    assert worked(tiny_services) == (JobState.QUEUED, {})
    if head_moved:
        moved(tiny_services)
    with tiny_services.database.write() as session:
        LeaseRepository(session).give_back_all("another")
        session.execute(update(JobRow).where(JobRow.id == job).values(not_before_at=0))
    assert worked(tiny_services)[0] is JobState.SUCCEEDED
    with tiny_services.database.read() as session:
        events = EventRepository(session).list(job)
        assert LeaseRepository(session).holder(slot) is None
    finished = [str(event.stage) for event in events if event.kind == "stage_finished"]
    first = ["check", "probe", "train"]
    assert finished == [*first, *(first if head_moved else []), "tune", "guard", "evaluate"]
    assert head(tiny_services) == (3 if head_moved else 2)


def test_a_share_of_the_jobs_tunes(installation: tunings.TuningInstallation, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[bool] = []

    def offer(_: float, __: float, ___: dict[str, float], draw: Callable[[random.Random], Any]) -> None:
        source = random.Random(0)
        drawn.extend(draw(source) is not None for _ in range(1000))

    monkeypatch.setattr(installation, "_offer", offer)
    measured = installation.measure_tunings(pipeline.SLOT, {"check": 1.0}, STAGES, 0.5)
    assert 150 < sum(drawn) < 250
    assert measured["tunings"] == 0
