"""A version with a readout answers with both, wherever it is asked; one without goes on as it was."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.published import add_version, embedding_of
from support.real_jobs import Desk, opinions
from support.refusals import refused as error_of

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.contract.report import TrainingFacts
from onboard.contract.versions import VersionDocument
from onboard.domain.dataset import Dataset, Example
from onboard.domain.job import JobSpec
from onboard.domain.submission import Submission
from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError, PinMismatchError
from onboard.jobs.submission import job_spec
from onboard.model.readout import bare_features
from onboard.operations.gc import collect_garbage
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import TrainOutput
from onboard.registry.services import Services
from onboard.report.label_next import more_labels
from onboard.serving import Predictor
from onboard.statistics.readout import Readout
from onboard.statistics.share import usual_share
from onboard.storage.embedding import read_facts
from onboard.storage.readout import pack_readout
from onboard.versions.answers import answers
from onboard.versions.delete import delete_task
from onboard.versions.fetch import fetch
from onboard.versions.readouts import readout_of

TEXTS = ["good film", "a bad plot", "the film was great and not sad", "awful"]
LABELS = ("sad", "happy")


def drawn(base: Base, labels: int = 2, share: float = 0.6) -> Readout:
    size = load_engine(base, "cpu").backbone.config.d_model
    weights = np.random.default_rng(5).standard_normal((labels, size)).astype(np.float16)
    return Readout(weights, 3.0, np.arange(labels, dtype=np.float32), share)


@pytest.fixture
def read_out(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1))
    digest = tiny_services.store(pack_readout(drawn(tiny_base), tiny_base.digest), "readout")
    return add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), readout=digest)


def probabilities(predictor: Predictor, reference: str = "v2") -> np.ndarray:
    inputs = [{"task": "mood", "ref": reference, "text": text} for text in TEXTS]
    return np.array([answer.probabilities for answer in predictor.predict(inputs)])


def test_it_answers_with_both_and_the_version_before_with_its_embedding_alone(
    tiny_services: Services, tiny_base: Base, read_out: EmbeddingVersion
) -> None:
    predictor = Predictor(tiny_services)
    engine, readout = load_engine(tiny_base, "cpu"), drawn(tiny_base)
    features = bare_features(engine, engine.encoder.encode([(text, None) for text in TEXTS]))
    alone, together = probabilities(predictor, "v1"), probabilities(predictor)
    np.testing.assert_allclose(together, 0.4 * alone + 0.6 * readout.probabilities(features), atol=1e-6)
    assert np.abs(together - alone).max() > 0.01
    assert VersionDocument.of(read_out).to_json()["readout"] == read_out.readout


@pytest.mark.parametrize(("pair", "blocks"), [(None, 2), ("it", 4)])
def test_a_readout_that_a_release_of_before_left_in_a_job_answers_there_as_it_did(
    tiny_base: Base, pair: str | None, blocks: int
) -> None:
    engine, labels = load_engine(tiny_base, "cpu"), ("a", "b")
    rows = tuple(Example(text, pair, labels[place % 2]) for place, text in enumerate(TEXTS))
    bench = Workbench(tiny_base, engine, Dataset("classification", labels, rows), labels)
    width = engine.backbone.config.d_model
    weights = np.random.default_rng(5).standard_normal((2, blocks * width)).astype(np.float16)
    features = bare_features(engine, bench.encode(rows))
    then = np.hstack([features[:, block * width : (block + 1) * width] for block in (0, 1, 3, 4)[:blocks]])
    scores = then.astype(np.float64) @ weights.astype(np.float64).T
    powers = np.exp(scores - scores.max(1, keepdims=True))
    answers = Readout(weights, 1.0, np.zeros(2, dtype=np.float32)).probabilities(bench.features(rows, lambda: None))
    np.testing.assert_allclose(answers, powers / powers.sum(1, keepdims=True), atol=1e-9)


def test_in_a_mixed_batch_only_its_own_rows_are_read_out(tiny_services: Services, read_out: EmbeddingVersion) -> None:
    predictor = Predictor(tiny_services)
    tasks = [("mood", "v2"), ("mood", "v1"), ("sst2", "v1"), ("stsb", "v1")]
    inputs = [
        {"task": task, "ref": ref, **({"text_a": text, "text_b": "plot"} if task == "stsb" else {"text": text})}
        for text in TEXTS
        for task, ref in tasks
    ]
    for given, answer in zip(inputs, predictor.predict(inputs), strict=True):
        (alone,) = predictor.predict([given])
        np.testing.assert_allclose(answer.probabilities, alone.probabilities, atol=1e-5)


def test_labels_in_another_order_are_answered_in_that_order(
    tiny_services: Services, tiny_base: Base, read_out: EmbeddingVersion
) -> None:
    turned = readout_of(tiny_services, read_out, LABELS[::-1])
    assert turned is not None
    features = np.ones((1, turned.weights.shape[1]), dtype=np.float32)
    assert np.array_equal(turned.probabilities(features)[:, ::-1], drawn(tiny_base).probabilities(features))
    engine = load_engine(tiny_base, "cpu")
    rows = [Example(text, None, "sad") for text in TEXTS]
    own = answers(engine, read_out, embedding_of(1), LABELS, rows, readout_of(tiny_services, read_out))
    other = answers(engine, read_out, embedding_of(1), LABELS[::-1], rows, turned)
    np.testing.assert_allclose(own, other[:, ::-1], atol=1e-6)


def test_a_bundle_brings_it_and_predicts_the_same_elsewhere(
    tiny_services: Services, read_out: EmbeddingVersion, tmp_path: Path
) -> None:
    expected = probabilities(Predictor(tiny_services))
    fetched = fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    assert "readout.safetensors" in [path.name for path in fetched.files]
    assert read_facts(fetched.files[0].read_bytes())["readout"] == read_out.readout
    assert str(read_out.readout) in (tmp_path / "bundle" / "card.md").read_text()
    shutil.rmtree(tiny_services.settings.resolved_home)
    np.testing.assert_allclose(probabilities(Predictor(tmp_path / "bundle")), expected, atol=1e-6)
    (tmp_path / "bundle" / "readout.safetensors").unlink()
    with error_of("bundle-readout-missing"):
        Predictor(tmp_path / "bundle")


def test_what_is_fetched_answers_from_its_folder_alone_as_its_card_shows(
    tiny_services: Services,
    tiny_base: Base,
    read_out: EmbeddingVersion,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = probabilities(Predictor(tiny_services))
    fetched = fetch(tiny_services, "mood", tmp_path / "parts")
    assert [path.name for path in fetched.files] == ["embedding.safetensors", "card.md", "readout.safetensors"]
    shutil.rmtree(tiny_services.settings.resolved_home)
    with error_of("bundle-base-missing"):
        Predictor(tmp_path / "parts")
    monkeypatch.setenv("ONBOARD_BASE", str(tiny_base.folder))
    np.testing.assert_allclose(probabilities(Predictor(tmp_path / "parts")), expected, atol=1e-6)
    card = (tmp_path / "parts" / "card.md").read_text(encoding="utf-8")
    assert f"{read_out.stored_bytes:,} bytes: `embedding.safetensors` and `readout.safetensors`" in card
    program = card.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path / "parts")
    exec(program, {})
    assert any(label in capsys.readouterr().out for label in LABELS)


def test_one_of_another_base_or_of_other_labels_is_refused(tiny_services: Services, tiny_base: Base) -> None:
    foreign = tiny_services.store(pack_readout(drawn(tiny_base), "sha256:" + "0" * 64), "readout")
    wide = tiny_services.store(pack_readout(drawn(tiny_base, labels=3), tiny_base.digest), "readout")
    for digest, refused in ((foreign, PinMismatchError), (wide, DamagedError)):
        add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), readout=digest)
        with pytest.raises(refused):
            Predictor(tiny_services).predict([{"task": "mood", "text": "good"}])


def test_its_bytes_stay_while_a_version_needs_them_and_go_with_its_task(
    tiny_services: Services, read_out: EmbeddingVersion
) -> None:
    assert read_out.readout is not None
    collect_garbage(tiny_services, older_than_hours=0)
    assert tiny_services.artifacts.has(read_out.readout)
    delete_task(tiny_services, "mood")
    assert not tiny_services.artifacts.has(read_out.readout)


def learned_with_one(desk: Desk, rows: list[dict[str, Any]], task: str, **options: Any) -> dict[str, Any]:
    result = desk.learn(rows, task, **options)
    facts, version = result["readout"], desk.version(task)
    assert (version.readout is not None) == (facts["share"] > 0)
    return result


@pytest.mark.parametrize(("count", "evidence"), [(40, "cross-validated rows"), (90, "held-out")])
def test_a_job_gives_its_version_a_readout_where_rows_say_that_it_helps(
    desk: Desk, tiny_services: Services, count: int, evidence: str
) -> None:
    result = learned_with_one(desk, opinions(count), "mood")
    facts = result["readout"]
    assert facts["asked"] == "auto"
    assert facts["evidence"].startswith(evidence)
    assert facts["reason"]
    assert facts["after"] < facts["before"] if facts["share"] else facts["after"] == facts["before"]
    answers = Predictor(tiny_services).predict([{"task": "mood", "text": row["text"]} for row in opinions(8)])
    assert all(sum(answer.probabilities) == pytest.approx(1.0, abs=1e-5) for answer in answers)


def test_what_is_measured_is_what_is_answered(desk: Desk, tiny_services: Services) -> None:
    tests = opinions(24, start=100)
    desk.learn(opinions(40), test=tests)
    version = desk.version("mood")
    answered = Predictor(tiny_services).predict([{"task": "mood", "text": row["text"]} for row in tests])
    right = np.mean([answer.label == row["label"] for answer, row in zip(answered, tests, strict=True)])
    assert version.metrics["test"]["accuracy"]["value"] == pytest.approx(right)


def test_where_none_is_wanted_there_is_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert job_spec(Submission("hf://mood", readout="never"), "mini").readout == "never"
    assert job_spec(Submission("hf://mood"), "mini").readout == "auto"
    monkeypatch.setattr(JobSpec, "readout", "never")
    result = desk.learn(opinions(40), "mood")
    assert result["readout"] is None
    assert desk.version("mood").readout is None


def test_too_few_rows_for_an_estimate_take_the_usual_share(desk: Desk) -> None:
    facts = learned_with_one(desk, opinions(6), "few")["readout"]
    assert (facts["share"], facts["reason"]) == (
        usual_share(6),
        "No rows show how much it adds, so it has the default share.",
    )


def test_a_number_is_read_out_too(desk: Desk, tiny_services: Services) -> None:
    rows = [{**row, "label": round(1 + 4 * number / 39, 3)} for number, row in enumerate(opinions(40))]
    learned_with_one(desk, rows, "stars", options={"kind": "regression"}, kind="regression")
    (answer,) = Predictor(tiny_services).predict([{"task": "stars", "text": "film was good"}])
    assert isinstance(answer.label, float)
    assert 1.0 <= answer.label <= 5.0


def test_what_a_stage_left_is_read_back_with_its_readout(tiny_base: Base) -> None:
    rng = np.random.default_rng(0)
    trained = TrainOutput(
        np.zeros(16, np.float32), TrainingFacts(), None, None, None, [], {}, readout=drawn(tiny_base),
        read_out=rng.random((3, 2)),
    )  # fmt: skip
    document = json.loads(json.dumps(trained.to_json()))
    again = TrainOutput.from_json(document)
    assert again.to_json() == document
    assert again.readout is not None
    assert np.array_equal(again.readout.weights, drawn(tiny_base).weights)


def reported(result: dict[str, Any]) -> tuple[float, float]:
    """Accuracy of the learning curve's last point, and of the validation estimate."""
    return result["more_rows"]["points"][-1]["accuracy"], result["metrics"]["validation"]["accuracy"]["value"]


@pytest.mark.parametrize("count", [40, 90])
def test_the_learning_curve_of_an_embedding_ends_at_what_is_published(
    desk: Desk, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.train.learning_curve._constant", lambda *_: False)  # the tiny base answers alike
    monkeypatch.setattr(JobSpec, "readout", "never")
    curve, validation = reported(desk.learn(opinions(count)))
    assert curve == pytest.approx(validation)


@pytest.mark.parametrize("count", [40, 90])
def test_the_learning_curve_is_that_of_readouts_where_one_answers(
    desk: Desk, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.train.learning_curve.CURVE_SECONDS", 0.0)
    more = learned_with_one(desk, opinions(count), "mood")["more_rows"]
    assert more["of_readout"]
    assert [round(point["rows"]) for point in more["points"]] == ([15, 30] if count == 40 else [34, 68])
    section = more_labels({"more_rows": more})
    assert section is not None
    assert section.sentences[-1].startswith("Learning curve of the readout alone: ")
    monkeypatch.setattr(JobSpec, "readout", "never")
    alone = desk.learn(opinions(count), "plain")["more_rows"]
    assert (alone["of_readout"], alone["points"]) == (False, [])
    assert "too long" in alone["reason"]


@pytest.mark.parametrize("count", [40, 90])
def test_a_readout_that_is_not_published_has_no_curve(desk: Desk, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.train.learning_curve.CURVE_SECONDS", 0.0)
    for module in ("published", "readout"):
        monkeypatch.setattr(f"onboard.pipeline.{module}.choose_share", lambda *_: 0.0)
    more = learned_with_one(desk, opinions(count), "mood")["more_rows"]
    assert more["points"] == []
    assert "too long" in more["reason"]


def test_rows_are_suspected_by_what_is_published(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.data.label_errors.MARGIN", 0.6)  # a tiny base is sure of little
    rows = opinions(40)
    rows[7] = {**rows[7], "label": next(row["label"] for row in rows if row["label"] != rows[7]["label"])}
    result = learned_with_one(desk, rows, "mood")
    warnings = [warning for warning in result["dataset"]["warnings"] if warning["code"] == "contradicted_labels"]
    assert [example["text"] for warning in warnings for example in warning["examples"]] == [rows[7]["text"]]


@pytest.mark.usefixtures("gently")
@pytest.mark.parametrize("count", [40, 90])
def test_a_tuning_is_judged_by_what_would_be_published(desk: Desk, count: int) -> None:
    before = learned_with_one(desk, opinions(count), "before", init="sst2")["readout"]
    assert before["share"] > 0
    tuning = desk.learn(opinions(count), "after", init="sst2", tune_hypernetwork="always")["tuning"]
    assert tuning["by_share"]["0"] == pytest.approx(before["after"], abs=1e-5)
    assert tuning["before"] == pytest.approx(before["after"], abs=1e-5)
