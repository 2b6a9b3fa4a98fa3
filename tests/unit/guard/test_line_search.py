"""The gate: what is let through, how much of it, and what is said."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support.guarded import Counted, earlier, pairs, shaken, texts
from support.published import embedding_of

from onboard.contract.guard import GuardedTask, GuardVerdict, Objection
from onboard.errors import CancelledError
from onboard.guard import GuardSettings, Step, clear, guard, line_search
from onboard.guard.answers import Question
from onboard.guard.verdicts import Seen
from onboard.model.engine import Engine
from onboard.model.execution import UNWATCHED, Execution
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between
from onboard.model.protected import ProtectedTask, Protection
from onboard.model.weights import hypernetwork_digest

SETTINGS = GuardSettings(fewest_rows=60, texts=16)
NEAR = embedding_of(50)


@pytest.fixture
def canaries(tiny_engine: Engine) -> list[list[int]]:
    return [*texts(tiny_engine, 40, 77), *pairs(tiny_engine, 20, 78)]


@pytest.fixture
def tasks(tiny_engine: Engine) -> list[ProtectedTask]:
    return [
        earlier(tiny_engine, "sst2", seed=1),
        earlier(tiny_engine, "reviews@v1", seed=2, own=20),
        earlier(tiny_engine, "tickets@v3", seed=3, rows=60),
    ]


def judged(
    engine: Engine, candidate: Hypernetwork, tasks: list[ProtectedTask], canaries: list[list[int]], **more: object
) -> GuardVerdict:
    settings = more.pop("settings", SETTINGS)
    assert isinstance(settings, GuardSettings)
    step, execution = Step(engine.hypernetwork, candidate, NEAR), more.pop("execution", UNWATCHED)
    return guard(engine, step, Protection(tasks, canaries), settings, execution=execution, **more)  # type: ignore[arg-type]  # plain keywords


def test_no_change_is_accepted_whole_with_a_row_per_task(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    verdict = judged(tiny_engine, copy.deepcopy(tiny_engine.hypernetwork), tasks, canaries)
    assert (verdict.verdict, verdict.share, verdict.unchecked, verdict.chosen) == ("accepted", 1.0, 0, None)
    assert [task.task for task in verdict.tasks] == ["sst2", "reviews@v1", "tickets@v3"]
    assert [task.evidence for task in verdict.tasks] == ["divergence", "divergence", "held-out rows"]
    assert [(task.increase, task.high, task.flipped) for task in verdict.tasks] == [(0.0, 0.0, 0)] * 3


def test_what_turns_the_answers_over_is_rejected_and_says_who_loses(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    verdict = judged(tiny_engine, shaken(tiny_engine.hypernetwork, 30.0), tasks, canaries)
    assert (verdict.verdict, verdict.share) == ("rejected", 0.0)
    lost = [task.task for task in verdict.tasks if task.verdict == "fail"]
    assert lost
    assert lost[0] in verdict.reason
    assert "--tune-hypernetwork never" in verdict.reason


def test_of_a_step_that_is_too_long_as_much_is_taken_as_harms_nobody(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    scale = 0.05
    while judged(tiny_engine, shaken(tiny_engine.hypernetwork, scale), tasks, canaries).share == 1.0:
        scale *= 1.25
    candidate = shaken(tiny_engine.hypernetwork, scale)
    verdict = judged(tiny_engine, candidate, tasks, canaries)
    assert verdict.verdict == "accepted"
    assert verdict.share in (0.5, 0.25, 0.125)
    refused = [objection.share for objection in verdict.objections]
    assert refused == [share for share in SETTINGS.shares if share > verdict.share]
    names = {task.name for task in tasks}
    assert all(objection.tasks and set(objection.tasks) <= names for objection in verdict.objections)
    taken = between(tiny_engine.hypernetwork, candidate, verdict.share)
    assert judged(tiny_engine, taken, tasks, canaries).share == 1.0


def test_answers_from_before_the_change_are_computed_once_for_several_calls(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[bool]] = []
    real = line_search.answers

    def answers(engine: Engine, questions: Sequence[Question], *rest: Any) -> list[np.ndarray]:
        asked.append([question.hypernetwork is tiny_engine.hypernetwork for question in questions])
        return real(engine, questions, *rest)

    monkeypatch.setattr(line_search, "answers", answers)
    answered: dict[bytes, np.ndarray] = {}
    candidate = shaken(tiny_engine.hypernetwork, 1e-6)
    first = judged(tiny_engine, candidate, tasks, canaries, answered=answered)
    before = [[True] * 3, [False] * 3] * 2
    assert asked == before
    newcomer = earlier(tiny_engine, "new@v1", seed=9, own=20)
    again = judged(tiny_engine, candidate, [*tasks, newcomer], canaries, answered=answered)
    assert asked == [*before, *[[True], [False] * 4] * 2]
    increases = [task.increase for task in first.tasks]
    assert [task.increase for task in again.tasks[:3]] == pytest.approx(increases, abs=1e-6)
    other = [replace(task, name=f"{task.name}9") for task in tasks]
    judged(tiny_engine, candidate, other, canaries, answered=answered)
    assert asked[-4:] == before


def test_tasks_are_compared_with_what_they_were_learned_under_and_not_with_the_head(
    tiny_engine: Engine, canaries: list[list[int]]
) -> None:
    """Else small losses would add up over many tunings."""
    origin = shaken(tiny_engine.hypernetwork, 30.0)
    moved_away = earlier(tiny_engine, "old@v1", seed=4, own=20, reference=origin)
    assert judged(tiny_engine, tiny_engine.hypernetwork, [moved_away], canaries).verdict == "rejected"
    assert judged(tiny_engine, origin, [moved_away], canaries).share == 1.0


def test_the_second_half_may_refuse_what_the_first_let_through_and_nothing_is_tried_again(
    tiny_engine: Engine, canaries: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    real = line_search.judge

    def judge(seen: Sequence[Seen], settings: GuardSettings) -> list[GuardedTask]:
        looked.append(len(seen))
        verdicts = real(seen, settings)
        return (
            verdicts if len(looked) == 1 else [verdict.model_copy(update={"verdict": "fail"}) for verdict in verdicts]
        )

    monkeypatch.setattr(line_search, "judge", judge)
    task = earlier(tiny_engine, "reviews@v1", seed=2, own=20)
    verdict = judged(tiny_engine, copy.deepcopy(tiny_engine.hypernetwork), [task], canaries)
    assert (verdict.verdict, len(looked)) == ("rejected", 2)
    assert "second test" in verdict.reason
    assert verdict.objections == (Objection(share=1.0, tasks=("reviews@v1",)),)


def test_a_share_is_chosen_with_something_to_spare_and_confirmed_against_the_margin(
    tiny_engine: Engine, canaries: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    margins: list[float] = []
    real = line_search.judge

    def judge(seen: Sequence[Seen], settings: GuardSettings) -> list[GuardedTask]:
        margins.append(settings.margin)
        return real(seen, settings)

    monkeypatch.setattr(line_search, "judge", judge)
    task = earlier(tiny_engine, "reviews@v1", seed=2, own=20)
    settings = replace(SETTINGS, margin=0.02, choosing=0.5)
    unchanged = copy.deepcopy(tiny_engine.hypernetwork)
    verdict = judged(tiny_engine, unchanged, [task], canaries, settings=settings)
    assert margins == [0.01, 0.02]
    assert (verdict.verdict, verdict.margin) == ("accepted", 0.02)


@pytest.mark.parametrize("rows", [0, 60])
def test_a_task_whose_snapshot_cannot_be_read_never_passes(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]], rows: int
) -> None:
    broken = earlier(tiny_engine, "broken@v1", rows=rows, own=20, trouble="Its snapshot is gone.")
    batches = Counted()
    verdict = judged(
        tiny_engine, tiny_engine.hypernetwork, [*tasks, broken], canaries, execution=Execution(before_batch=batches)
    )
    assert verdict.verdict == "rejected"
    assert [(task.task, task.verdict, task.trouble) for task in verdict.tasks] == [
        ("broken@v1", "not enough evidence", "Its snapshot is gone.")
    ]
    assert "broken@v1" in verdict.reason
    assert "onboard restore" in verdict.reason
    assert (verdict.unchecked, batches.calls) == (3, 0)  # nothing is computed for an answer that is known


def test_a_task_without_rows_and_texts_is_not_enough_evidence(tiny_engine: Engine) -> None:
    verdict = judged(tiny_engine, tiny_engine.hypernetwork, [earlier(tiny_engine, "sst2")], [])
    assert verdict.verdict == "rejected"
    assert verdict.tasks[0].verdict == "not enough evidence"


def test_weights_that_are_no_numbers_are_rejected(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    ruined = copy.deepcopy(tiny_engine.hypernetwork).requires_grad_(False)
    with torch.no_grad():
        next(ruined.parameters()).fill_(float("nan"))
    verdict = judged(tiny_engine, ruined, tasks, canaries)
    assert verdict.verdict == "rejected"
    json.dumps(verdict.to_json(), allow_nan=False)


def test_without_earlier_tasks_the_whole_step_is_taken(tiny_engine: Engine, canaries: list[list[int]]) -> None:
    verdict = judged(tiny_engine, shaken(tiny_engine.hypernetwork, 3.0), [], canaries)
    assert (verdict.verdict, verdict.share, verdict.tasks) == ("accepted", 1.0, ())


def test_of_too_many_tasks_some_are_looked_at_and_the_others_are_counted(
    tiny_engine: Engine, canaries: list[list[int]]
) -> None:
    tasks = [earlier(tiny_engine, f"task-{seed}", seed=seed) for seed in range(7)]
    few = replace(SETTINGS, most_tasks=4)
    verdict = judged(tiny_engine, tiny_engine.hypernetwork, tasks, canaries, settings=few, left_out=100)
    assert (len(verdict.tasks), verdict.unchecked) == (4, 103)
    assert verdict.chosen
    assert verdict.to_json()["unchecked"] == 103


def test_the_same_arguments_give_the_same_judgement_and_nothing_is_touched(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    candidate = shaken(tiny_engine.hypernetwork, 0.3)
    digests = hypernetwork_digest(candidate), hypernetwork_digest(tiny_engine.hypernetwork)
    first = judged(tiny_engine, candidate, tasks, canaries, seed=3)
    assert judged(tiny_engine, candidate, tasks, canaries, seed=3) == first
    assert (hypernetwork_digest(candidate), hypernetwork_digest(tiny_engine.hypernetwork)) == digests
    assert judged(tiny_engine, candidate, tasks, canaries, seed=4).tasks != first.tasks


def test_the_document_says_everything(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    document = json.loads(json.dumps(judged(tiny_engine, tiny_engine.hypernetwork, tasks, canaries).to_json()))
    assert set(document) == {"verdict", "share", "margin", "reason", "tasks", "unchecked", "chosen", "objections"}
    assert set(document["tasks"][0]) == {
        "task", "verdict", "evidence", "increase", "low", "high", "rows", "flipped", "detectable", "trouble",
    }  # fmt: skip


def test_a_cancelled_job_leaves_the_guard(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    def stop(_: int) -> None:
        raise CancelledError("The job was cancelled.")

    with pytest.raises(CancelledError):
        judged(tiny_engine, tiny_engine.hypernetwork, tasks, canaries, execution=Execution(before_batch=Counted(stop)))


def test_clearing_looks_at_all_evidence_of_each_task_and_one_in_trouble_stops_no_other(
    tiny_engine: Engine, tasks: list[ProtectedTask], canaries: list[list[int]]
) -> None:
    broken = earlier(tiny_engine, "broken@v1", trouble="Its snapshot is gone.")
    cleared = clear(tiny_engine, tiny_engine.hypernetwork, Protection([broken, *tasks], canaries), SETTINGS)
    assert [task.task for task in cleared] == ["broken@v1", "sst2", "reviews@v1", "tickets@v3"]
    assert [task.passed for task in cleared] == [False, True, True, True]
    assert [task.rows for task in cleared] == [0, 32, 48, 60]
    assert cleared[0].reason == "Its snapshot is gone."
    assert "0.000 nats" in cleared[1].reason


def test_clearing_nothing_clears_nothing(tiny_engine: Engine, canaries: list[list[int]]) -> None:
    assert clear(tiny_engine, tiny_engine.hypernetwork, Protection([], canaries)) == []
