"""What a tuned job is judged by: the evidence of earlier tasks, and what is known of the new one."""

from __future__ import annotations

from typing import Any

import pytest
from support.real_jobs import Desk, opinions
from support.tuned_heads import tuned_head
from support.tuned_jobs import diverging_on_less_than, record_of

from onboard.bases import Base
from onboard.evaluate import verdicts
from onboard.model.protected import ProtectedTask
from onboard.pipeline import guard as guarded
from onboard.pipeline import tune as tuned
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services
from onboard.testing import RecordedProgress

pytestmark = pytest.mark.usefixtures("gently")


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, ProtectedTask]:
    """The earlier tasks as the guard sees them, by name."""
    tasks: dict[str, ProtectedTask] = {}
    guard = guarded.guard

    def look(engine: Any, step: Any, protection: Any, *rest: Any, **more: Any) -> Any:
        tasks.update({task.name: task for task in protection.tasks})
        return guard(engine, step, protection, *rest, **more)

    monkeypatch.setattr(guarded, "guard", look)
    return tasks


def test_a_task_that_tuned_the_head_is_judged_on_its_own_texts_too(desk: Desk, seen: dict[str, ProtectedTask]) -> None:
    desk.learn(opinions(24), "first", init="sst2", tune_hypernetwork="always")
    shared = opinions(8, start=16)
    desk.learn([*opinions(16, start=40), *shared], "second", init="sst2", tune_hypernetwork="always")
    assert len(seen["first@v1"].texts) == 16, "those that the second one trains on are no evidence"


def test_an_earlier_embedding_that_cannot_be_read_refuses_the_step_and_fails_no_job(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.learn(opinions(24), "earlier", init="sst2")
    path = tiny_services.file(desk.version("earlier").artifact)
    assert path is not None
    path.unlink()
    desk.submit(opinions(30), tune_hypernetwork="always")
    progress = RecordedProgress()
    result = desk.run(desk.claim(), progress).result or {}
    assert any(note.startswith("earlier@v1 was excluded from the probe. ") for _, note, _ in progress.calls)
    assert "earlier@v1" not in {candidate["embedding"] for candidate in result["init"]["candidates"]}
    (verdict,) = [task for task in result["guard"]["tasks"] if task["task"] == "earlier@v1"]
    assert "embedding cannot be read" in verdict["trouble"]
    assert (result["guard"]["verdict"], result["hypernetwork_version"]) == ("rejected", 1)
    assert record_of(tiny_services, tiny_base).head == 1


def test_rows_that_the_start_knows_have_no_say_in_what_is_tuned(desk: Desk) -> None:
    desk.learn(opinions(16), init="sst2")
    result = desk.learn(opinions(32), init="mood@v1", tune_hypernetwork="always")
    assert result["tuning"]["rows"] == 16
    if result["metrics"]["validation"]:
        assert result["metrics"]["validation"]["accuracy"]["n"] == 16


@pytest.mark.parametrize("weak", [True, False])
def test_a_version_that_tuning_leaves_without_an_estimate_stays_weak_where_the_embedding_alone_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, weak: bool
) -> None:
    def judged(intervals: Any, trivial: Any, deciding: str) -> verdicts.Weakness:
        return verdicts.Weakness(
            weak and bool(intervals), bool(intervals), "So it is." if intervals else "Nobody knows."
        )

    monkeypatch.setattr("onboard.pipeline.evaluate.weakness", judged)
    monkeypatch.setattr(tuned, "tune", diverging_on_less_than(40, tuned.tune))
    result = desk.learn(opinions(40), init="sst2", tune_hypernetwork="always")
    assert (result["tuning"]["kept"], result["metrics"]["validation"]) == (True, None)
    assert (result["weak"], result["weak_reason"]) == (weak, "Measured before the tuning. So it is.")


@pytest.mark.parametrize("back", [True, False])
def test_a_version_that_an_alias_went_back_to_after_the_head_moved_does_not_hold_it(
    desk: Desk, tiny_services: Services, tiny_base: Base, back: bool
) -> None:
    """The guard of that move did not know of it: only what an alias names is guarded."""
    for start in (0, 40):
        desk.learn(opinions(24, start=start), "moved", init="random")
    if not back:
        _go_back(tiny_services)
    tuned_head(tiny_services, tiny_base, scale=0.5)
    if back:
        _go_back(tiny_services)
    guard = desk.learn(opinions(30), init="random", tune_hypernetwork="always")["guard"]
    assert ("moved@v1" in {task["task"] for task in guard["tasks"]}) is not back
    assert ("moved@v1" in (guard["chosen"] or "")) is back


def test_auto_says_why_a_step_that_was_let_through_was_not_kept(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    from onboard.report.tuned import tuning_facts
    from onboard.train.worth_tuning import Worth

    monkeypatch.setattr(tuned, "worth_tuning", lambda _: Worth(True, "It pays."))
    monkeypatch.setattr(tuned, "tune", diverging_on_less_than(30, tuned.tune))  # so the training rows decide
    monkeypatch.setattr(guarded.Workbench, "loss", lambda *_, **__: 0.5)
    result = desk.learn(opinions(30), init="sst2", tune_hypernetwork="auto")
    assert (result["guard"]["verdict"], result["tuning"]["kept"]) == ("accepted", False)
    assert any("the result is as good without the step" in value for _, value in tuning_facts(result))


def _go_back(services: Services) -> None:
    with services.database.write() as session:
        AliasRepository(session).rollback("moved", "latest")
