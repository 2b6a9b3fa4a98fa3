"""By whose evidence a task is carried to a later head or refused: the guard, its held-out rows, what can be read."""

from __future__ import annotations

from typing import Any

import pytest
from support.carried import HARMFUL, HARMLESS, LABELS, everything, latest, refused, versions
from support.opposed import opposed, rows_as_seen
from support.published import add_version, embedding_of
from support.real_jobs import Desk, opinions
from support.refusals import refused as error_of
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.contract.guard import GuardedTask
from onboard.domain.task import EmbeddingVersion
from onboard.model.protected import Protection
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.versions.carry import carry, carry_task, clearing
from onboard.versions.carry.remeasuring import TAKEN_OVER
from onboard.versions.compare import compare


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that lets everything through."""

    def passed(engine: Any, candidate: Any, protection: Protection, *more: Any) -> list[GuardedTask]:
        return [
            GuardedTask(
                task=task.name, verdict="pass", evidence="divergence", increase=0.0, low=0.0, high=0.0, rows=96,
                flipped=0, detectable=0.01,
            )
            for task in protection.tasks
        ]  # fmt: skip

    monkeypatch.setattr(clearing, "clear", passed)


def test_what_the_guard_refuses_stays_as_it_is_and_is_named_with_its_reason(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion
) -> None:
    tuned_head(tiny_services, tiny_base, HARMFUL)
    before = everything(tiny_services)
    done = carry_task(tiny_services, "mood")
    assert "guard refuses it" in refused(done)
    (document,) = done.to_document().to_json()["refused"]
    assert (document["task"], document["from"], document["version"]) == ("mood", 1, None)
    assert (document["hypernetwork_from"], document["hypernetwork_version"]) == (1, 2)
    assert (document["guard"]["verdict"], document["guard"]["task"]) == ("fail", "mood@v1")
    assert everything(tiny_services) == before


def test_small_losses_do_not_add_up_over_many_heads(
    tiny_services: Services, tiny_base: Base, mood: EmbeddingVersion
) -> None:
    """Each head is a small step from the last one, in the same direction; from the origin they lead far away."""
    steps, cleared = 0, True
    while cleared:
        assert steps < 40
        tuned_head(tiny_services, tiny_base, 0.05, seed=1)
        cleared = carry_task(tiny_services, "mood").outcomes[0].cleared
        steps += 1
    assert steps > 2
    last = latest(tiny_services, "mood")
    assert (last.version, last.hypernetwork_version, last.origin) == (steps, steps, 1)
    add_version(tiny_services, tiny_base, "fresh", *LABELS, z=embedding_of(3), hypernetwork_version=steps)
    (alone,) = carry_task(tiny_services, "fresh").outcomes
    assert alone.cleared  # the same numbers, had they been learned under the last head


def test_metrics_are_measured_again_on_the_tasks_own_held_out_rows(desk: Desk, tiny_base: Base, cleared: None) -> None:
    services = desk.services
    desk.learn(opinions(100), test=opinions(40, start=200), metric="mcc")
    tuned_head(services, tiny_base, 0)
    carry_task(services, "mood")
    same, before = latest(services, "mood"), desk.version("mood@v1")
    assert {name: metric["n"] for name, metric in same.metrics["test"].items()} == {
        "accuracy": 40, "macro_f1": 40, "mcc": 40, "log_loss": 40, "calibration_error": 40,
    }  # fmt: skip
    assert same.metrics["validation"]["accuracy"]["n"] == 25
    for split, metrics in before.metrics.items():  # of the same weights
        now = {name: metric["value"] for name, metric in same.metrics[split].items()}
        assert now == pytest.approx({name: metric["value"] for name, metric in metrics.items()}, abs=1e-5)

    tuned_head(services, tiny_base, 0.2, seed=1)
    (outcome,) = carry_task(services, "mood").outcomes
    after = latest(services, "mood")
    assert (after.version, after.parent, after.origin) == (3, "mood@v2", 1)
    assert after.metrics == outcome.metrics != before.metrics
    side_by_side = compare(services, "mood@v1", "mood@v3").measured
    assert side_by_side is not None
    assert side_by_side.comparison.rows == 65
    assert outcome.comparison is not None
    assert outcome.comparison.rows == 65
    assert side_by_side.comparison.increase == pytest.approx(outcome.comparison.increase, abs=1e-5)
    assert abs(side_by_side.comparison.increase or 0.0) > 1e-4
    for name in ("accuracy", "log_loss"):
        by_split = [after.metrics[split][name] for split in ("test", "validation")]
        together = sum(metric["n"] * metric["value"] for metric in by_split) / 65
        assert side_by_side.metrics[1][name].value == pytest.approx(together, abs=1e-5)


def test_metrics_without_rows_are_taken_over_with_a_note_that_says_from_where(desk: Desk, tiny_base: Base) -> None:
    services = desk.services
    desk.learn(opinions(40), test=opinions(20, start=200))
    before = desk.version("mood@v1").metrics
    assert before["validation"]["accuracy"]["estimate"] == "cross-validated"
    for _ in range(2):
        tuned_head(services, tiny_base, 0)
        carry_task(services, "mood")
    version = latest(services, "mood")
    assert version.version == 3
    assert version.metrics["test"] == before["test"]
    for name, metric in version.metrics["validation"].items():
        said = metric.pop("note")
        assert said.endswith(f"{TAKEN_OVER} mood@v1, measured under hypernetwork version 1")
        assert said.count(TAKEN_OVER) == 1
        assert metric == {key: value for key, value in before["validation"][name].items() if key != "note"}


def test_a_regression_is_carried_and_measured_in_its_own_numbers(desk: Desk, tiny_base: Base) -> None:
    rows = [
        {"text": f"{opinion['text']} {number}", "label": number % 11 / 2} for number, opinion in enumerate(opinions(60))
    ]
    desk.learn(rows[:40], "stars", test=rows[40:], options={"kind": "regression"})
    tuned_head(desk.services, tiny_base, 0)
    (outcome,) = carry_task(desk.services, "stars").outcomes
    assert outcome.cleared
    assert latest(desk.services, "stars").metrics["test"] == desk.version("stars@v1").metrics["test"]
    assert outcome.comparison is not None
    assert (outcome.comparison.loss, outcome.comparison.increase) == ("squared_error", 0.0)


def test_latest_does_not_move_to_what_is_significantly_worse_though_the_guard_saw_nothing(
    desk: Desk, tiny_base: Base, trained_as: Any, cleared: None
) -> None:
    good, _, _ = opposed(tiny_base)
    trained_as(good)
    desk.learn(opinions(30), test=rows_as_seen(tiny_base, good, 80), init="random")
    tuned_head(desk.services, tiny_base, HARMFUL)
    before = everything(desk.services)
    done = carry_task(desk.services, "mood")
    assert "significantly worse than the current version by its answers on 80 shared held-out rows" in refused(done)
    assert done.to_document().to_json()["refused"][0]["comparison"]["verdict"] == "worse"
    assert everything(desk.services) == before


def test_rows_that_the_head_was_tuned_on_are_no_evidence(desk: Desk, tiny_base: Base) -> None:
    test = opinions(40, start=200)
    desk.learn(opinions(40), test=test)
    desk.learn([*test[:30], *opinions(30, start=400)], "tuning")
    tuned_head(desk.services, tiny_base, HARMLESS, job=desk.version("tuning@v1").job)
    (outcome,) = carry_task(desk.services, "mood").outcomes
    assert outcome.comparison is not None
    assert outcome.comparison.rows == 10
    assert latest(desk.services, "mood").metrics["test"]["accuracy"]["n"] == 10


@pytest.mark.parametrize("damage", ["gone", "other"])
@pytest.mark.parametrize("what", ["dataset", "embedding"])
def test_a_task_whose_bytes_cannot_be_read_is_refused_and_the_others_are_carried(
    desk: Desk, tiny_base: Base, what: str, damage: str
) -> None:
    services = desk.services
    desk.learn(opinions(100))
    version = desk.version("mood@v1")
    with services.database.read() as session:
        snapshot = SnapshotRepository(session).get(version.dataset_digest).artifact
    digest = {"dataset": snapshot, "embedding": version.artifact}[what]
    tuned_head(services, tiny_base, HARMLESS)
    services.artifacts.delete(digest)
    if damage == "other":
        services.artifacts._files.write(f"sha256/{digest[7:9]}/{digest[7:]}", b"other")
    outcomes = {outcome.present.task: outcome for outcome in carry(services, None).outcomes}
    assert {name: outcome.cleared for name, outcome in outcomes.items()} == {"mood": False, "sst2": True, "stsb": True}
    assert {"gone": "is missing", "other": "digest"}[damage] in outcomes["mood"].reason
    assert str(services.settings.resolved_home) not in outcomes["mood"].reason
    assert outcomes["mood"].verdict is not None
    assert outcomes["mood"].verdict.verdict == "not enough evidence"
    assert len(versions(services, "mood")) == 1


def test_a_head_whose_bytes_are_gone_is_an_error(tiny_services: Services, tiny_base: Base) -> None:
    head = tuned_head(tiny_services, tiny_base, 0.01, seed=77)
    tiny_services.artifacts.delete(str(head.artifact))
    from onboard.hypernetworks import engines as heads

    heads.loaded_hypernetworks.clear()  # another process has it in no memory
    with error_of("artifact-not-in-store"):
        carry_task(tiny_services, "sst2")


def test_who_is_asked_not_to_read_much_refuses_a_large_dataset(
    desk: Desk, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.learn(opinions(100))
    tuned_head(desk.services, tiny_base, HARMLESS)
    monkeypatch.setattr("onboard.versions.compare.MOST_ROWS_READ", 99)
    assert "too large for a comparison" in refused(carry_task(desk.services, "mood", bounded=True))
    assert carry_task(desk.services, "mood").outcomes[0].cleared
