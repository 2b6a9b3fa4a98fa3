"""Jobs that tune the hypernetwork: what the guard lets through becomes the head, and what it refuses costs nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from safetensors import safe_open
from support.real_jobs import Desk, opinions, write_rows
from support.tuned_jobs import (
    TUNED,
    dataset_artifact,
    diverging_on_less_than,
    line_of,
    made_weights,
    record_of,
    tune_violently,
)

from bench.harness.as_a_job import train_embedding
from onboard.bases import Base
from onboard.contract.guard import refused_by_guard
from onboard.contract.jobs import JobFacts
from onboard.domain.job import JobSpec, JobState
from onboard.errors import JobFailedError
from onboard.pipeline import evaluate as evaluated
from onboard.pipeline import guard as guarded
from onboard.pipeline import train as training
from onboard.pipeline import tune as tuned
from onboard.pipeline.material import Workbench
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.testing import RecordedProgress
from onboard.train import worth_tuning
from onboard.train.tuning import Tuned
from onboard.train.worth_tuning import Worth
from onboard.versions.fetch import fetch


def test_a_tuned_job_makes_a_new_head_and_its_version_is_pinned_to_that(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None
) -> None:
    earlier = desk.learn(opinions(24), "earlier", init="sst2")
    desk.submit(opinions(30), init="sst2", tune_hypernetwork="always")
    progress = RecordedProgress()
    job = desk.run(desk.claim(), progress)
    result = job.result or {}
    first, second = line_of(tiny_services, tiny_base)
    version = desk.version("mood@v1")
    assert progress.stages == TUNED
    assert set(result["seconds"]) == {*TUNED, "publish"}
    assert record_of(tiny_services, tiny_base).head == second.version == 2
    assert (second.parent, second.job) == (1, job.id)
    assert second.digest != first.digest
    assert result["hypernetwork_version"] == result["pins"]["hypernetwork_version"] == version.hypernetwork_version == 2
    assert version.origin == 2
    assert (result["guard"]["verdict"], result["guard"]["share"]) == ("accepted", 1.0)
    assert {task["task"] for task in result["guard"]["tasks"]} == {"earlier@v1", "sst2@v1", "stsb@v1"}
    assert second.metrics["guard"] == result["guard"]
    assert (result["tuning"]["kept"], result["tuning"]["evidence"]) == (
        True,
        "cross-validated rows",
    )
    assert desk.version("earlier@v1").hypernetwork_version == earlier["hypernetwork_version"] == 1
    with safe_open(fetch(tiny_services, "mood", desk.folder / "fetched").files[0], framework="np") as file:
        assert file.metadata()["hypernetwork_version"] == "2"
        assert file.metadata()["hypernetwork"] == second.digest
    answers = Predictor(tiny_services).predict([{"task": task, "text": "a good film"} for task in ("mood", "earlier")])
    assert [answer.task for answer in answers] == ["mood", "earlier"]


def test_the_next_task_is_learned_under_the_new_head(desk: Desk, tiny_services: Services, gently: None) -> None:
    desk.learn(opinions(24), init="sst2", tune_hypernetwork="always")
    assert desk.learn(opinions(20), "next", init="mood")["hypernetwork_version"] == 2


def test_a_refused_tuning_publishes_the_embedding_alone(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = desk.learn(opinions(30), "plain", init="sst2")
    tune_violently(monkeypatch)
    refused = desk.learn(opinions(30), "refused", init="sst2", tune_hypernetwork="always")
    assert refused["guard"]["verdict"] == "rejected"
    assert "fail" in {task["verdict"] for task in refused["guard"]["tasks"]}
    assert refused_by_guard(refused)
    assert not refused_by_guard(desk.learn(opinions(30), "unasked", init="sst2"))
    assert refused["state"] == "succeeded"
    assert (refused["hypernetwork_version"], refused["embedding_digest"]) == (1, plain["embedding_digest"])
    assert refused["metrics"] == plain["metrics"]
    assert refused["validation_reason"] == plain["validation_reason"], "what was refused has chosen nothing"
    assert [head.version for head in line_of(tiny_services, tiny_base)] == [1]


@pytest.mark.parametrize("asked", ["auto", "always"])
def test_a_tuning_that_diverges_publishes_the_embedding_alone(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch, asked: Any
) -> None:
    def diverge(*_: Any, **__: Any) -> Tuned:
        raise JobFailedError("Tuning the hypernetwork diverged: loss nan at step 1.")

    monkeypatch.setattr(tuned, "worth_tuning", lambda _: Worth(True, "It pays."))
    monkeypatch.setattr(tuned, "tune", diverge)
    result = desk.learn(opinions(24), init="sst2", tune_hypernetwork=asked)
    assert (result["hypernetwork_version"], result["guard"]["verdict"]) == (1, "rejected")
    assert "diverged" in result["guard"]["reason"]
    assert refused_by_guard(result) == (asked == "always")
    assert record_of(tiny_services, tiny_base).head == 1


def test_auto_leaves_the_hypernetwork_alone_where_tuning_is_not_worth_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def not_worth_it(alone: Any) -> Worth:
        seen.append(alone)
        return Worth(False, "The embedding alone is right.")

    monkeypatch.setattr(tuned, "worth_tuning", not_worth_it)
    monkeypatch.setattr(tuned, "tune", lambda *_, **__: pytest.fail("it was tuned"))
    result = desk.learn(opinions(40), init="sst2", tune_hypernetwork="auto")
    assert (result["guard"], result["hypernetwork_version"]) == (None, 1)
    assert result["tuning"]["reason"] == "The embedding alone is right."
    (alone,) = seen
    estimate = result["metrics"]["validation"]["accuracy"]
    assert (alone.accuracy, alone.rows, alone.labels) == (estimate["value"], 40, 2)
    assert alone.majority == result["baselines"]["validation"]["majority"]["accuracy"]["value"]
    assert alone.tfidf == result["baselines"]["validation"]["tfidf_logistic_regression"]["accuracy"]["value"]


def test_auto_measures_no_training_rows_where_no_others_show_what_there_is_to_gain(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workbench, "loss", lambda *_, **__: pytest.fail("rows were measured"))
    result = desk.learn(opinions(6), init="sst2", tune_hypernetwork="auto")
    assert result["tuning"]["reason"].startswith("No rows show")


def test_auto_measures_a_part_of_very_many_training_rows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def loss(_: Any, rows: Any, *__: Any) -> float:
        measured.append(len(rows))
        return 0.5

    monkeypatch.setattr(worth_tuning, "MOST_FITTED", 20)
    monkeypatch.setattr(tuned, "worth_tuning", lambda alone: Worth(alone.training_loss() > 1.0, "So it is."))
    monkeypatch.setattr(Workbench, "loss", loss)
    assert desk.learn(opinions(24), init="sst2", tune_hypernetwork="auto")["tuning"]["reason"] == "So it is."
    assert measured == [20]


@pytest.mark.parametrize("better", [True, False])
def test_auto_keeps_the_tuned_hypernetwork_only_where_the_new_task_gains(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, better: bool
) -> None:
    def tune(engine: Any, training_set: Any, z: Any, protection: Any, settings: Any, seed: int, *_: Any) -> Tuned:
        rows, trie = training_set.rows, training_set.trie
        # in the first look too; gently, so that no rounding turns it round
        gently = training.FewShotSettings(steps=20, batch=4, learning_rate=0.1)
        trained = train_embedding(engine, z, rows, trie, gently, seed).z
        return Tuned(engine.hypernetwork, trained if better else z - 2.0 * (trained - z), (0.5,), (0.0,), 0.0)

    monkeypatch.setattr(tuned, "worth_tuning", lambda _: Worth(True, "It pays."))
    monkeypatch.setattr(tuned, "tune", tune)
    monkeypatch.setattr(training, "FewShotSettings", training.FewShotSettings.func)  # type: ignore[attr-defined]
    monkeypatch.setattr(JobSpec, "readout", "never")  # it knows all that the step teaches
    desk.submit(opinions(30), init="random", tune_hypernetwork="auto")
    monkeypatch.setattr(training, "learn", _barely(training.learn))
    result = desk.run(desk.claim()).result or {}
    by_share = result["tuning"]["by_share"]
    assert ((result["guard"] or {}).get("verdict") == "accepted") is better, result["tuning"]
    assert result["tuning"]["proposed"] == (1.0 if better else 0.0)
    assert (by_share["1"] < by_share["0"]) is better
    assert result["tuning"]["kept"] is better
    assert result["hypernetwork_version"] == (2 if better else 1)
    seen = "A first look of 16 of 80 steps lowers the loss on 16 "  # half of the folds are enough to see nothing
    assert better or result["tuning"]["reason"].startswith(seen)
    assert result["tuning"].get("looked", False) is not better


@pytest.mark.parametrize(
    ("gain", "rows", "looks"),
    [
        (0.0, 40, [30, 30]),  # half of the folds see nothing
        (0.006, 40, [30, 30, 30, 30, 30, 30]),  # they see something, all of them too little
        (0.1, 40, [30, 30, 30, 30, 30, 30]),
        (0.0, 80, [60]),
        (0.1, 80, [60]),
    ],
)
def test_auto_takes_a_cheap_look_first_and_stops_where_nothing_is_to_be_gained(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, gain: float, rows: int, looks: list[int]
) -> None:
    tunings: list[tuple[int, int]] = []

    def tune(engine: Any, training_set: Any, z: Any, _: Any, settings: Any, *rest: Any) -> Tuned:
        tunings.append((len(training_set.rows.ids), settings.steps))
        return Tuned(engine.hypernetwork, z, (0.5,), (0.0,), 0.0)

    monkeypatch.setattr(tuned, "worth_tuning", lambda _: Worth(True, "It pays."))
    monkeypatch.setattr(tuned, "tune", tune)
    monkeypatch.setattr(tuned.LossByShare, "least", property(lambda losses: losses.alone - gain))
    progress = RecordedProgress()
    desk.submit(opinions(rows), init="sst2", tune_hypernetwork="auto")
    result = desk.run(desk.claim(), progress).result or {}
    whole = [40, 30, 30, 30, 30] if rows == 40 else [60]
    steps = tuned.TuningSettings().for_rows(whole[0]).steps
    assert [part for part, _ in tunings] == [*looks, *(whole if gain > 0.02 else [])]
    assert all(taken <= 0.2 * steps + 1 for _, taken in tunings[: len(looks)])
    assert result["tuning"].get("looked", False) is (gain <= 0.02)
    assert result["hypernetwork_version"] == 1


def test_less_than_the_whole_step_is_proposed_where_the_new_task_is_better_off_with_less(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tune(engine: Any, training_set: Any, z: Any, protection: Any, settings: Any, seed: int, *_: Any) -> Tuned:
        rows, trie = training_set.rows, training_set.trie
        trained = train_embedding(engine, z, rows, trie, training.FewShotSettings(steps=40, batch=8), seed).z
        return Tuned(engine.hypernetwork, z + 8.0 * (trained - z), (0.5,), (0.0,), 0.0)

    monkeypatch.setattr(tuned, "tune", tune)
    untempered(monkeypatch)
    monkeypatch.setattr(JobSpec, "readout", "never")
    desk.submit(opinions(30), init="random", tune_hypernetwork="always")
    monkeypatch.setattr(training, "learn", _barely(training.learn))
    result = desk.run(desk.claim()).result or {}
    by_share = {float(share): loss for share, loss in result["tuning"]["by_share"].items() if share != "0"}
    nearly_least = [share for share, loss in by_share.items() if loss <= min(by_share.values()) + 0.02]
    assert result["tuning"]["proposed"] == max(nearly_least) < 1.0
    assert result["guard"]["share"] == 1.0
    assert result["tuning"]["after"] == pytest.approx(by_share[result["tuning"]["proposed"]], abs=1e-5)
    assert result["metrics"]["validation"]["log_loss"]["value"] == pytest.approx(result["tuning"]["after"], abs=1e-5)
    version = desk.version("mood@v1")
    assert (version.hypernetwork_version, result["tuning"]["kept"]) == (2, True)


@pytest.mark.parametrize("rows", [40, 80])
def test_rows_that_chose_how_much_of_the_tuning_is_kept_are_told(desk: Desk, gently: None, rows: int) -> None:
    tuned, alone = (
        desk.learn(opinions(rows), name, init="sst2", tune_hypernetwork=name)["validation_reason"] or ""
        for name in ("always", "never")
    )
    assert "chose how much of the tuning was kept" in tuned
    assert "chose how much of the tuning was kept" not in alone


def untempered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of the probabilities that the tuning was judged by."""
    monkeypatch.setattr(evaluated, "temperature_of", lambda *_: (1.0, "", 0))


def _barely(learn: Any) -> Any:
    """Training of a single step, after which there is much to gain."""
    from dataclasses import replace

    def barely(engine: Any, training_set: Any, start: Any, settings: Any, *rest: Any) -> Any:
        return learn(engine, training_set, start, replace(settings, steps=1), *rest)

    return barely


def test_where_all_rows_train_each_is_predicted_by_a_tuning_that_has_not_seen_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, gently: None
) -> None:
    real, tunings = tuned.tune, []

    def tune(engine: Any, training_set: Any, *rest: Any) -> Tuned:
        tunings.append(len(training_set.rows.ids))
        return real(engine, training_set, *rest)

    monkeypatch.setattr(tuned, "tune", tune)
    untempered(monkeypatch)
    monkeypatch.setattr(JobSpec, "readout", "never")
    result = desk.learn(opinions(40), init="sst2", tune_hypernetwork="always")
    assert tunings == [40, 30, 30, 30, 30]
    estimate = result["metrics"]["validation"]["accuracy"]
    assert (estimate["n"], estimate["estimate"]) == (40, "cross-validated")
    assert result["metrics"]["validation"]["log_loss"]["value"] == pytest.approx(result["tuning"]["after"], abs=1e-5)
    assert result["tuning"]["before"] != result["tuning"]["after"]
    assert not result["weak_reason"].startswith("Measured before the tuning. ")
    more = result["more_rows"]
    assert (more["points"], more["gain"]) == ([], None), "the curve is the embedding's, from before the tuning"
    assert more["reason"].startswith("The learning curve was made before the hypernetwork was tuned")


def test_without_an_estimate_of_the_tuned_version_it_is_said_and_the_training_rows_decide(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, gently: None
) -> None:
    monkeypatch.setattr(tuned, "tune", diverging_on_less_than(40, tuned.tune))
    result = desk.learn(opinions(40), init="sst2", tune_hypernetwork="always")
    assert result["metrics"] == {"validation": None, "test": None}
    assert result["tuning"]["evidence"] == "training rows"
    assert "to tune the hypernetwork" in result["validation_reason"]
    assert result["weak_reason"].startswith("Measured before the tuning. ")


def test_fewer_than_16_held_out_rows_choose_nothing_and_so_their_estimate_is_fair(desk: Desk, gently: None) -> None:
    held = write_rows(desk.folder / "held.jsonl", opinions(15, start=60))
    result = desk.learn(opinions(40), init="sst2", tune_hypernetwork="always", options={"validation": held})
    tuning, estimate = result["tuning"], result["metrics"]["validation"]["accuracy"]
    assert (tuning["proposed"], "by_share" in tuning) == (1.0, False)
    assert (tuning["kept"], tuning["evidence"], tuning["rows"]) == (True, "training rows", 40)
    assert (estimate["n"], result["validation_kind"], result["validation_reason"]) == (15, "held-out", None)


def test_a_tuned_version_is_measured_on_held_out_rows_as_it_is_published(
    desk: Desk, tiny_services: Services, gently: None
) -> None:
    rows = opinions(24, start=80)
    result = desk.learn(opinions(80), init="sst2", tune_hypernetwork="always", test=rows)
    assert result["tuning"]["evidence"] == "held-out rows"
    answers = Predictor(tiny_services).predict([{"task": "mood", "text": row["text"]} for row in rows])
    right = sum(answer.label == row["label"] for answer, row in zip(answers, rows, strict=True))
    assert result["metrics"]["test"]["accuracy"]["value"] == pytest.approx(right / len(rows))
    assert result["hypernetwork_version"] == 2


@pytest.mark.parametrize("harm", ["gone", "damaged"])
def test_an_earlier_task_whose_rows_cannot_be_read_is_told_and_is_no_pass(desk: Desk, gently: None, harm: str) -> None:
    desk.learn(opinions(24), "earlier", init="sst2")
    path = dataset_artifact(desk, "earlier")
    path.unlink() if harm == "gone" else path.write_bytes(path.read_bytes()[:-9])
    result = desk.learn(opinions(30), init="sst2", tune_hypernetwork="always")
    (verdict,) = [task for task in result["guard"]["tasks"] if task["task"] == "earlier@v1"]
    assert verdict["verdict"] != "pass"
    assert "dataset" in verdict["trouble"]
    assert "earlier@v1" in result["guard"]["reason"]
    assert result["guard"]["verdict"] == "rejected"
    assert result["hypernetwork_version"] == 1


def test_what_is_published_is_what_was_guarded_also_where_only_a_share_of_the_step_is_taken(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch, gently: None
) -> None:
    from onboard.model.interpolate import between

    guard, candidates = guarded.guard, []

    def half(engine: Any, step: Any, *rest: Any, **more: Any) -> Any:

        candidates.append((step.present, step.candidate))
        return guard(engine, step, *rest, **more).model_copy(update={"share": 0.5})

    monkeypatch.setattr(guarded, "guard", half)
    result = desk.learn(opinions(30), init="sst2", tune_hypernetwork="always")
    (present, candidate) = candidates[0]
    halfway = between(present, candidate, 0.5)
    from onboard.hypernetworks.engines import hypernetwork_at
    from onboard.model.weights import hypernetwork_digest

    assert hypernetwork_digest(hypernetwork_at(tiny_services, tiny_base, 2, "cpu")) == hypernetwork_digest(halfway)
    assert result["guard"]["share"] == 0.5


def test_every_published_version_makes_the_same_weights_after_three_tunings(
    desk: Desk, tiny_services: Services, tiny_base: Base, gently: None
) -> None:
    """Decision 4: tasks and tunings in turn, and the bytes of every version's generated weights are what they were."""
    made: dict[str, str] = {}
    for number in range(8):
        asked = "always" if number % 3 == 1 else "never"
        result = desk.learn(opinions(8 + number), f"task-{number}", init="sst2", tune_hypernetwork=asked)
        version = desk.version(f"task-{number}@v{result['version']}")
        made[version.reference] = made_weights(tiny_services, tiny_base, version)
    for source in ("sst2@v1", "stsb@v1"):
        made[source] = made_weights(tiny_services, tiny_base, desk.version(source))
    line = line_of(tiny_services, tiny_base)
    assert [head.version for head in line] == [1, 2, 3, 4]
    assert [head.parent for head in line] == [None, 1, 2, 3]
    assert {desk.version(name).hypernetwork_version for name in made} == {1, 2, 3, 4}
    _forget_loaded_hypernetworks()
    assert {name: made_weights(tiny_services, tiny_base, desk.version(name)) for name in made} == made


def _forget_loaded_hypernetworks() -> None:
    from onboard.hypernetworks import engines as heads

    heads.loaded_hypernetworks.clear()


def test_the_log_and_the_document_of_a_tuned_job_are_json(desk: Desk, gently: None) -> None:
    desk.submit(opinions(24), init="sst2", tune_hypernetwork="always")
    progress = RecordedProgress()
    job = desk.run(desk.claim(), progress)
    json.dumps([JobFacts.of_job(job).to_json(), job.result, progress.calls], allow_nan=False)
    assert job.state is JobState.SUCCEEDED
