"""Tunings of one base at the same time: nobody waits, and every step is judged on the head that it is published on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from support.real_jobs import CrashError, Desk, HookedProgress, opinions
from support.tuned_heads import tuned_head
from support.tuned_jobs import TUNED, line_of, record_of

from onboard.bases import Base
from onboard.contract.guard import GuardedTask, GuardVerdict
from onboard.domain.job import Job, JobState
from onboard.guard import Step, guard
from onboard.hypernetworks.engines import hypernetwork_at
from onboard.model.engine import Engine
from onboard.pipeline import guard as guarded
from onboard.pipeline import moved_head as moving
from onboard.pipeline import run as pipeline
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services
from workers.shell import work

pytestmark = pytest.mark.usefixtures("gently")
HELD_OUT, FOLDED = 160, 24  # rows, enough for held-out rows, and so few that folds judge
ELSEWHERE = (
    300  # where the rows of other tasks begin: a head that was tuned on rows that judge cannot be judged by them
)


def once_after(stage: str, meanwhile: Callable[[], object]) -> HookedProgress:
    """Calls `meanwhile` when a stage has finished for the first time."""
    left = [meanwhile]

    def hook(what: str, name: str) -> None:
        if (what, name) == ("finished", stage) and left:
            left.pop()()

    return HookedProgress(hook)


def submitted(desk: Desk, rows: int = HELD_OUT) -> Job:
    """A claimed job that tunes."""
    desk.submit(opinions(rows), init="sst2", tune_hypernetwork="always")
    job = desk.claim()
    desk.keep(job)
    return job


def heads(services: Services, base: Base) -> list[tuple[int, int | None]]:
    """Number and parent of every head, oldest first."""
    return [(head.version, head.parent) for head in line_of(services, base)]


@pytest.mark.parametrize("rows", [HELD_OUT, FOLDED])
def test_a_second_tuning_runs_while_the_first_computes_and_both_become_heads(
    desk: Desk, tiny_services: Services, tiny_base: Base, rows: int
) -> None:
    job, ended = submitted(desk, rows), list[JobState]()

    def other() -> None:
        desk.submit(opinions(24, start=ELSEWHERE), "other", init="sst2", tune_hypernetwork="always")
        done = work(tiny_services, "w2", ["default"], pipeline.run)
        assert done is not None
        ended.append(done.state)

    progress = once_after("tune", other)
    result = desk.run(job, progress).result or {}
    assert ended == [JobState.SUCCEEDED]  # it did not wait
    assert progress.stages == TUNED  # nothing is repeated: the step is judged on the new head at once
    assert heads(tiny_services, tiny_base) == [(1, None), (2, 1), (3, 2)]
    assert result["hypernetwork_version"] == record_of(tiny_services, tiny_base).head == 3
    verdicts = {task["task"]: task["verdict"] for task in result["guard"]["tasks"]}
    assert verdicts == {"other@v1": "pass", "sst2@v1": "pass", "stsb@v1": "pass"}
    first, second = line_of(tiny_services, tiny_base)[1:]
    assert second.metrics["guard"] == result["guard"]
    assert (second.metrics["tuning"]["moved_from"], "moved_from" in first.metrics["tuning"]) == (1, False)
    measured_before = "measured with hypernetwork version 1" in (result["validation_reason"] or "")
    assert measured_before is (rows == FOLDED)


def test_a_head_that_moves_after_the_guard_is_met_by_a_second_judgement_and_no_second_tuning(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    progress = once_after("evaluate", lambda: tuned_head(tiny_services, tiny_base, scale=1e-6))
    desk.run(submitted(desk), progress)
    assert progress.stages == [*TUNED, "guard", "evaluate"]
    assert heads(tiny_services, tiny_base) == [(1, None), (2, 1), (3, 2)]


def test_what_the_guard_judged_on_the_new_head_is_what_becomes_the_head(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[Step] = []

    def seen(engine: Engine, step: Step, *rest: Any, **named: Any) -> GuardVerdict:
        judged.append(step)
        return guard(engine, step, *rest, **named)

    monkeypatch.setattr(guarded, "guard", seen)
    result = desk.run(submitted(desk), once_after("evaluate", lambda: tuned_head(tiny_services, tiny_base, scale=1e-6)))
    assert (result.result or {})["guard"]["share"] == 1
    published = hypernetwork_at(tiny_services, tiny_base, 3, "cpu").state_dict()
    moved = hypernetwork_at(tiny_services, tiny_base, 2, "cpu").state_dict()
    first, last = judged
    for name, weight in published.items():
        assert torch.equal(last.candidate.state_dict()[name], weight)
        assert torch.equal(last.present.state_dict()[name], moved[name])
        step = first.candidate.state_dict()[name] - first.present.state_dict()[name]
        assert torch.allclose(weight - moved[name], step, atol=1e-6)


def test_a_step_that_the_guard_refuses_on_the_new_head_leaves_the_embedding_under_the_old_one(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move() -> None:
        tuned_head(tiny_services, tiny_base, scale=1e-6)
        refusal = GuardVerdict(verdict="rejected", reason="It would lose.")
        monkeypatch.setattr(guarded, "guard", lambda *_, **__: refusal)

    result = desk.run(submitted(desk), once_after("evaluate", move)).result or {}
    assert (result["guard"]["reason"], result["hypernetwork_version"]) == ("It would lose.", 1)
    assert record_of(tiny_services, tiny_base).head == 2


def test_a_step_made_on_a_head_that_was_reverted_meanwhile_is_not_carried_over(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    tuned_head(tiny_services, tiny_base, scale=1e-6)

    def revert() -> None:
        with tiny_services.database.write() as session:
            BaseRepository(session).set_head(tiny_base.digest, 1, expected_head=2)

    progress = once_after("evaluate", revert)
    desk.run(submitted(desk), progress)
    assert progress.stages.count("tune") == 2  # from the head that is there now
    assert heads(tiny_services, tiny_base) == [(1, None), (2, 1), (3, 1)]


def test_a_step_whose_judging_rows_the_new_head_was_tuned_on_is_not_carried_over(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    def other() -> None:
        desk.learn(opinions(HELD_OUT - 2), "other", init="sst2", tune_hypernetwork="always")

    progress = once_after("tune", other)
    desk.run(submitted(desk), progress)
    assert progress.stages.count("tune") == 2
    assert heads(tiny_services, tiny_base) == [(1, None), (2, 1), (3, 2)]


def lost(*_: Any, **__: Any) -> list[GuardedTask]:
    """The verdict on a task that the move would cost something."""
    return [GuardedTask(task="mood", verdict="fail", increase=0.1, high=0.2, rows=40)]


def test_a_step_that_its_own_task_would_lose_by_on_the_new_head_is_tuned_again_there(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "clear", lost)
    progress = once_after("tune", lambda: tuned_head(tiny_services, tiny_base, scale=1e-6))
    result = desk.run(submitted(desk, FOLDED), progress).result or {}
    assert progress.stages == [*TUNED[:-1], *TUNED]
    assert "moved_from" not in result["tuning"]
    assert heads(tiny_services, tiny_base) == [(1, None), (2, 1), (3, 2)]


def test_a_step_that_cannot_be_moved_in_any_start_is_given_up_and_the_embedding_published(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "clear", lost)

    def move(what: str, name: str) -> None:
        if (what, name) == ("finished", "tune"):
            tuned_head(tiny_services, tiny_base, scale=1e-6)

    progress = HookedProgress(move)
    job = desk.run(submitted(desk, FOLDED), progress)
    result = job.result or {}
    assert progress.stages.count("tune") == pipeline.MOST_STARTS
    assert (result["guard"]["verdict"], result["tuning"]["kept"], result["hypernetwork_version"]) == (
        "rejected", False, 3,
    )  # fmt: skip
    assert result["tuning"]["reason"] == result["guard"]["reason"]
    assert result["guard"]["reason"].startswith("The hypernetwork moved from version 3 to 4 while this job tuned it")
    assert any(result["guard"]["reason"] in str(call) for call in progress.calls)
    assert record_of(tiny_services, tiny_base).head == 4


def test_a_worker_that_dies_between_judgement_and_swap_leaves_the_head_to_the_next_attempt(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    job, guards = submitted(desk), list[str]()

    def hook(what: str, name: str) -> None:
        if (what, name) == ("finished", "evaluate") and len(guards) == 1:
            tuned_head(tiny_services, tiny_base, scale=1e-6)
        if (what, name) == ("finished", "guard"):
            guards.append(name)
            if len(guards) == 2:
                raise CrashError

    with pytest.raises(CrashError):
        desk.run(job, HookedProgress(hook))
    assert (record_of(tiny_services, tiny_base).head, desk.versions("mood")) == (2, [])
    desk.lose()
    assert desk.run(desk.claim()).state is JobState.SUCCEEDED
    assert heads(tiny_services, tiny_base) == [(1, None), (2, 1), (3, 2)]
