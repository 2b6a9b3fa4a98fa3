"""`submit --method`: a version of the task's own weights, or of a readout alone, goes the way of all others."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.real_jobs import STAGES, CrashError, Desk, crash_after, opinions
from support.refusals import refused
from support.small_methods import SETTINGS

from onboard.bases import Base, find_base
from onboard.domain.dataset import Example
from onboard.domain.job import JobSpec
from onboard.domain.methods import OWN_START, OWN_WEIGHTS
from onboard.hypernetworks.engines import engine_at
from onboard.model.readout import bare_features
from onboard.operations.gc import collect_garbage
from onboard.pipeline import own_weights
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.statistics.share import PRIOR_BESIDE_WEIGHTS
from onboard.storage.embedding import read_facts
from onboard.testing import RecordedProgress
from onboard.train.settings import OwnWeightsSettings
from onboard.versions.answers import answers, task_of_version
from onboard.versions.carry import carry
from onboard.versions.compare import compare
from onboard.versions.delete import delete_task
from onboard.versions.fetch import fetch
from onboard.versions.promote import promote
from onboard.versions.readouts import readout_of
from onboard.versions.task_map import present_map

TEXTS = ["film was good", "the plot was awful", "a great film and not sad"]


@pytest.fixture
def quick(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A desk where own weights are trained in three steps."""
    monkeypatch.setattr(own_weights, "OwnWeightsSettings", partial(OwnWeightsSettings, steps=3, most_steps=3))
    return desk


def learn(desk: Desk, method: str, task: str = "mood", count: int = 16, **more: Any) -> dict[str, Any]:
    return desk.learn(opinions(count), task, method=method, settings=SETTINGS.get(method), **more)


def probabilities(predictor: Predictor, task: str = "mood", ref: str = "latest") -> np.ndarray:
    asked = [{"task": task, "ref": ref, "text": text} for text in TEXTS]
    return np.array([answer.probabilities for answer in predictor.predict(asked)])


@pytest.mark.parametrize("method", ["linear", *OWN_WEIGHTS])
def test_every_method_publishes_a_version_that_is_served_and_says_what_it_is(
    quick: Desk, tiny_services: Services, method: str
) -> None:
    result, version = learn(quick, method), quick.version("mood")
    assert (version.method, version.parent, version.hypernetwork_version) == (method, OWN_START, 1)
    files = [version.artifact] if version.readout is None else [version.artifact, version.readout]
    assert version.stored_bytes == sum(map(tiny_services.artifacts.size_bytes, files))
    assert result["training"]["method"] == method
    assert result["training"]["trained"] > 0
    assert (result["init"]["chosen"], result["tuning"]) == (OWN_START, None)
    if method == "linear":
        assert (result["readout"], version.readout) == (None, None), "it is one"
    else:
        assert (version.readout is not None) == (result["readout"]["share"] > 0)
    assert result["validation_kind"] == "cross-validated"
    assert result["metrics"]["validation"]["accuracy"]["n"] == 16
    assert probabilities(Predictor(tiny_services)).sum(1) == pytest.approx([1.0] * 3, abs=1e-5)


@pytest.mark.parametrize(("count", "evidence"), [(24, "cross-validated rows"), (90, "held-out")])
def test_a_readout_answers_beside_weights_of_the_task_s_own_where_rows_want_it(
    quick: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch, count: int, evidence: str
) -> None:
    result = learn(quick, "compacter", count=count)
    facts, version = result["readout"], quick.version("mood")
    assert facts["evidence"].startswith(evidence)
    assert (facts["share"] > 0, facts["after"] < facts["before"]) == (True, True)
    assert "the readout" in result["validation_reason"], "these rows chose something"
    monkeypatch.setattr(JobSpec, "readout", "never")
    alone = learn(quick, "compacter", "alone", count=count)
    plain, readout = quick.version("alone"), readout_of(tiny_services, version)
    assert (alone["readout"], plain.readout) == (None, None)
    assert readout is not None
    own, both = (replace(quick.version(task), temperature=1.0) for task in ("alone", "mood"))
    engine = engine_at(tiny_services, find_base(tiny_services.settings.base), 1)
    rows = [Example(text, None, "") for text in TEXTS]
    trained, _ = task_of_version(tiny_services, engine, own)
    task, beside = task_of_version(tiny_services, engine, both)
    expected = readout.beside(
        answers(engine, own, trained, own.words, rows, None),
        bare_features(engine, engine.encoder.encode([(text, None) for text in TEXTS])),
    )
    np.testing.assert_allclose(answers(engine, both, task, both.words, rows, beside), expected, atol=1e-5)


def test_few_rows_leave_a_readout_its_usual_share(quick: Desk) -> None:
    assert learn(quick, "compacter", count=6)["readout"]["share"] == PRIOR_BESIDE_WEIGHTS


def test_adapters_can_start_at_what_an_embedding_generates(quick: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    first = quick.learn(opinions(16), "mood")["version"]
    monkeypatch.setattr(own_weights, "OwnWeightsSettings", partial(OwnWeightsSettings, steps=1, most_steps=1))
    result = quick.learn(opinions(16, start=40), "taste", method="adapters-dagger", init="mood")
    version = quick.version("taste")
    assert (version.method, version.parent, result["init"]["generated_by"]) == ("adapters-dagger", "mood@v1", "mood@v1")
    assert result["init"]["chosen"] == OWN_START
    assert "starts from the adapters of mood@v1" in result["init"]["reason"]
    assert result["training"]["settings"]["reduction_factor"] == 4  # the base's
    quick.learn(opinions(16), "mood", method="adapters-dagger", init=f"mood@v{first}")
    assert quick.version("mood@v2").parent == "mood@v1"


def test_tasks_of_different_methods_are_answered_in_one_request_as_alone(quick: Desk, tiny_services: Services) -> None:
    methods = ["linear", "compacter", "bitfit", "prompt-tuning-t", "intrinsic-said", "adapters-dagger"]
    for method in methods:
        learn(quick, method, f"by-{method.replace('+', 'p')}")
    quick.learn(opinions(16), "embedded")
    predictor = Predictor(tiny_services)
    tasks = ["sst2", "embedded", *(f"by-{method}" for method in methods)]
    inputs = [{"task": task, "text": text} for text in TEXTS for task in tasks]
    for given, answer in zip(inputs, predictor.predict(inputs), strict=True):
        (alone,) = predictor.predict([given])
        np.testing.assert_allclose(answer.probabilities, alone.probabilities, atol=1e-5)


def test_what_is_measured_is_what_is_answered(quick: Desk, tiny_services: Services) -> None:
    tests = opinions(12, start=100)
    for method in ("linear", "adapters"):
        learn(quick, method, method, test=tests)
        answered = Predictor(tiny_services).predict([{"task": method, "text": row["text"]} for row in tests])
        right = np.mean([answer.label == row["label"] for answer, row in zip(answered, tests, strict=True)])
        assert quick.version(method).metrics["test"]["accuracy"]["value"] == pytest.approx(right)


def test_rows_that_are_held_out_judge_and_numbers_are_learned_too(quick: Desk, tiny_services: Services) -> None:
    assert learn(quick, "compacter", count=72)["validation_kind"] == "held-out"
    rows = [{**row, "label": round(1 + 4 * number / 23, 3)} for number, row in enumerate(opinions(24))]
    for method in ("linear", "adapters"):
        kind = {"options": {"kind": "regression"}, "kind": "regression", "settings": SETTINGS.get(method)}
        quick.learn(rows, f"stars-{method}", method=method, **kind)
        (answer,) = Predictor(tiny_services).predict([{"task": f"stars-{method}", "text": "film was good"}])
        assert isinstance(answer.label, float)
        assert 1.0 <= answer.label <= 5.0


@pytest.mark.parametrize("method", ["linear", "compacter", "intrinsic-said"])
def test_a_bundle_predicts_the_same_elsewhere(
    quick: Desk, tiny_services: Services, tmp_path: Path, method: str
) -> None:
    learn(quick, method)
    expected = probabilities(Predictor(tiny_services))
    fetched = fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    beside = [] if method == "linear" else ["readout.safetensors"]
    assert [path.name for path in fetched.files] == ["weights.safetensors", "card.md", "base", *beside]
    facts = read_facts(fetched.files[0].read_bytes())
    assert (facts["format"], facts["method"], facts["task"]) == ("onboard-task-weights-1", method, "mood")
    card = fetched.files[1].read_text()
    assert f"| method | `{method}` |" in card
    assert f"| bytes stored | `{fetched.version.stored_bytes:,}` |" in card
    shutil.rmtree(tiny_services.settings.resolved_home)
    np.testing.assert_allclose(probabilities(Predictor(tmp_path / "bundle")), expected, atol=1e-6)
    fetched.files[0].write_bytes(fetched.files[0].read_bytes()[:-4] + b"\0\0\0\0")
    with refused("bundle-part-damaged" if method == "linear" else "novelty-digest-differs"):
        Predictor(tmp_path / "bundle")


def test_versions_of_different_methods_are_compared_and_promoted(quick: Desk, tiny_services: Services) -> None:
    quick.learn(opinions(72), "mood")
    result = learn(quick, "linear", count=72)
    assert result["latest"]["present"] == "mood@v1"
    assert result["latest"]["comparison"]["rows"] > 0
    side_by_side = compare(tiny_services, "mood@v1", "mood@v2")
    assert side_by_side.measured is not None
    assert side_by_side.to_document().to_json()["b"]["method"] == "linear"
    promote(tiny_services, "mood@v2", "production")
    asked = probabilities(Predictor(tiny_services), ref="production")
    assert asked == pytest.approx(probabilities(Predictor(tiny_services), ref="v2"))


def test_nothing_starts_from_it_and_no_head_carries_it(quick: Desk, tiny_services: Services, tiny_base: Base) -> None:
    learn(quick, "linear")
    with refused("version-without-embedding"):
        quick.submit(opinions(16), "other", init="mood")
    candidates = quick.learn(opinions(16), "other")["init"]["candidates"]
    assert "mood@v1" not in [candidate["embedding"] for candidate in candidates]
    (outcome,) = carry(tiny_services, "mood").outcomes
    assert (outcome.cleared, outcome.version) == (False, None)
    assert outcome.reason.startswith("It has no embedding: linear does not use a hypernetwork")
    assert carry(tiny_services, None).outcomes == ()
    shown = {task["task"]: task["placed_by"] for task in present_map(tiny_services)["tasks"]}
    assert shown["mood"] in ("lesson", "readout")  # it is on the map all the same
    engine = engine_at(tiny_services, tiny_base, 1)
    task, readout = task_of_version(tiny_services, engine, quick.version("mood"))
    assert task is None
    assert readout is not None


@pytest.mark.parametrize("method", ["linear", "compacter"])
def test_its_bytes_stay_while_it_is_there_and_go_with_its_task(
    quick: Desk, tiny_services: Services, method: str
) -> None:
    learn(quick, method)
    artifact = quick.version("mood").artifact
    collect_garbage(tiny_services, older_than_hours=0)
    assert tiny_services.artifacts.has(artifact)
    delete_task(tiny_services, "mood")
    assert not tiny_services.artifacts.has(artifact)


def test_another_attempt_goes_on_after_the_training(quick: Desk) -> None:
    quick.submit(opinions(16), "mood", method="compacter", settings=SETTINGS["compacter"])
    with pytest.raises(CrashError):
        quick.run(quick.claim(), crash_after("train"))
    quick.lose()
    progress = RecordedProgress()
    job = quick.run(quick.claim(), progress)
    assert job.result is not None
    notes = [said for what, said, _ in progress.calls if what == "note" and "resumed" in said]
    assert notes == [f"{stage}: resumed from the output of an earlier attempt" for stage in STAGES[1:3]]
    assert quick.version("mood").method == "compacter"


def test_texts_to_label_next_are_named_by_what_was_learned(quick: Desk, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    pool.write_text("".join(f'{{"text": "{text}"}}\n' for text in TEXTS), encoding="utf-8")
    for method in ("linear", "prompt-tuning-r"):
        rows = learn(quick, method, method, options={"unlabelled": pool})["label_next"]["rows"]
        assert {row["text"] for row in rows} <= set(TEXTS)
