"""What is published while a job tunes: newcomers are guarded, and a head that moved meanwhile costs nobody anything."""

from __future__ import annotations

from typing import Any

import pytest
from support.real_jobs import Desk, HookedProgress, opinions
from support.tuned_heads import tuned_head
from support.tuned_jobs import TUNED, dataset_artifact, line_of, record_of

from onboard.bases import Base
from onboard.contract.guard import GuardedTask
from onboard.model.protected import Protection
from onboard.pipeline import guard as guarded
from onboard.pipeline import outcome
from onboard.pipeline import run as pipeline
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.versions.promote import promote


def _in_between(desk: Desk, stage: str, work: Any) -> HookedProgress:
    """Calls `work` once, when a stage has finished."""
    left = [work]

    def hook(what: str, name: str) -> None:
        if (what, name) == ("finished", stage) and left:
            left.pop()()

    return HookedProgress(hook)


def test_a_task_that_was_published_while_the_guard_ran_is_guarded_before_the_head_moves(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None
) -> None:
    desk.submit(opinions(30), init="sst2", tune_hypernetwork="always")
    job = desk.claim()
    progress = _in_between(desk, "guard", lambda: desk.learn(opinions(20), "meanwhile", init="sst2"))
    result = desk.run(job, progress).result or {}
    verdicts = {task["task"]: task["verdict"] for task in result["guard"]["tasks"]}
    assert verdicts["meanwhile@v1"] == "pass"
    assert (result["guard"]["verdict"], result["hypernetwork_version"]) == ("accepted", 2)
    assert line_of(tiny_services, tiny_base)[1].metrics["guard"] == result["guard"]
    assert progress.stages == TUNED


def test_a_newcomer_that_would_lose_keeps_the_head_where_it_is(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None
) -> None:
    desk.submit(opinions(30), init="sst2", tune_hypernetwork="always")
    job = desk.claim()

    def publish_something_unreadable() -> None:
        desk.learn(opinions(20), "meanwhile", init="sst2")
        dataset_artifact(desk, "meanwhile").unlink()

    result = desk.run(job, _in_between(desk, "guard", publish_something_unreadable)).result or {}
    assert (result["guard"]["verdict"], result["guard"]["share"], result["hypernetwork_version"]) == ("rejected", 0, 1)
    assert "meanwhile@v1" in result["guard"]["reason"]
    assert result["tuning"]["kept"] is False
    assert result["validation_reason"] != outcome._NO_ESTIMATE
    assert record_of(tiny_services, tiny_base).head == 1
    plain = desk.learn(opinions(30), "plain", init="sst2")
    assert result["embedding_digest"] == plain["embedding_digest"]


def test_a_head_that_keeps_moving_leaves_the_embedding_alone_instead_of_holding_the_job_for_ever(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None
) -> None:
    desk.submit(opinions(24), init="sst2", tune_hypernetwork="always")
    job = desk.claim()

    def move(what: str, name: str) -> None:
        if (what, name) == ("finished", "evaluate"):
            tuned_head(tiny_services, tiny_base, scale=1e-6)

    progress = HookedProgress(move)
    result = desk.run(job, progress).result or {}
    judged = 1 + pipeline.MOST_MOVES
    assert progress.stages == [*TUNED, *["guard", "evaluate"] * pipeline.MOST_MOVES, "evaluate"]
    assert (result["guard"]["verdict"], result["tuning"]["kept"]) == ("rejected", False)
    assert result["guard"]["reason"].startswith(f"The hypernetwork moved from version 1 to {1 + judged} ")
    assert any(result["guard"]["reason"] in str(call) for call in progress.calls)
    assert result["hypernetwork_version"] == 1
    assert [head.job for head in line_of(tiny_services, tiny_base)] == [None] * (2 + judged)
    plain = desk.learn(opinions(24), "plain", init="sst2@v1")
    assert plain["hypernetwork_version"] == 2 + judged


def test_a_plain_job_whose_head_moved_is_published_under_the_one_that_it_was_trained_with(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    desk.submit(opinions(24), init="sst2")
    job = desk.claim()
    progress = _in_between(desk, "evaluate", lambda: tuned_head(tiny_services, tiny_base))
    result = desk.run(job, progress).result or {}
    assert (result["hypernetwork_version"], record_of(tiny_services, tiny_base).head) == (1, 2)
    assert progress.stages == ["check", "probe", "train", "evaluate"]
    assert Predictor(tiny_services).predict([{"task": "mood", "text": "a good film"}])[0].version == 1


@pytest.mark.parametrize("late", [True, False])
def test_a_task_that_lost_by_a_step_whose_guard_could_not_know_of_it_does_not_hold_later_ones(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None, late: bool
) -> None:
    def move() -> None:
        tuned_head(tiny_services, tiny_base, scale=0.5)

    desk.submit(opinions(24), "straggler", init="random")
    desk.run(desk.claim(), _in_between(desk, "evaluate", move) if late else HookedProgress(lambda *_: None))
    if not late:
        move()
    guard = desk.learn(opinions(30), init="random", tune_hypernetwork="always")["guard"]
    refusing = {task["task"] for task in guard["tasks"]}
    assert refusing == ({"sst2@v1", "stsb@v1"} if late else {"sst2@v1", "stsb@v1", "straggler@v1"})
    assert guard["unchecked"] == (1 if late else 0)
    rule = "all but straggler@v1, which were published too late for an earlier step that may have harmed them"
    assert guard["chosen"] == (rule if late else None)


def test_a_task_that_came_too_late_and_cannot_be_judged_does_not_hold_later_steps_either(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.submit(opinions(24), "straggler", init="random")
    desk.run(desk.claim(), _in_between(desk, "evaluate", lambda: tuned_head(tiny_services, tiny_base)))

    def unsure(engine: Any, head: Any, protection: Protection, *_: Any, **__: Any) -> list[GuardedTask]:
        return [
            GuardedTask(
                task=task.name,
                verdict="not enough evidence",
                evidence="held-out rows",
                increase=0.01,
                low=-0.01,
                high=0.03,
                rows=40,
            )
            for task in protection.tasks
        ]

    monkeypatch.setattr(guarded, "clear", unsure)
    guard = desk.learn(opinions(30), init="random", tune_hypernetwork="always")["guard"]
    assert "straggler@v1" not in {task["task"] for task in guard["tasks"]}
    assert "all but straggler@v1" in guard["chosen"]


def test_a_version_that_its_own_task_left_behind_does_not_hold_later_steps(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None
) -> None:
    desk.learn(opinions(24), "mood", init="random")
    promote(tiny_services, "mood@v1", "production")
    desk.submit(opinions(30), "mood", init="random")
    job = desk.claim()
    desk.run(job)
    tuned_head(tiny_services, tiny_base, scale=0.5, job=job.id)  # as if mood@v2 had been learned with it
    guard = desk.learn(opinions(26, start=300), "other", init="random", tune_hypernetwork="always")["guard"]
    assert "mood@v1" not in {task["task"] for task in guard["tasks"]}
    assert "mood@v1" in guard["chosen"]


def test_a_task_left_behind_by_a_revert_does_not_hold_the_head(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None
) -> None:
    from onboard.registry.bases import BaseRepository

    tuned_head(tiny_services, tiny_base, scale=0.5)
    desk.learn(opinions(24), "aside", init="sst2")
    with tiny_services.database.write() as session:
        BaseRepository(session).set_head(tiny_base.digest, 1, expected_head=2)
    result = desk.learn(opinions(30), init="sst2", tune_hypernetwork="always")
    assert "aside@v1" not in {task["task"] for task in result["guard"]["tasks"]}
    assert (result["guard"]["verdict"], result["hypernetwork_version"]) == ("accepted", 3)
