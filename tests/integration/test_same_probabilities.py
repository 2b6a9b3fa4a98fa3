"""A version's probabilities are the same wherever they are told, and a training with the service's own recipe."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from support.callers import bearer
from support.program import Place
from support.published import embedding_of
from support.real_jobs import Desk, opinions

from onboard.api.app import create_app
from onboard.data.label_errors import Doubt
from onboard.pipeline import train as training
from onboard.serving import Predictor
from onboard.train.fewshot import Trained
from onboard.train.learning import Learned
from onboard.train.settings import FewShotSettings
from onboard.versions.compare import compare
from onboard.versions.fetch import fetch

TRAIN, TEST = opinions(30), opinions(40, start=80)


@pytest.fixture
def two_versions(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Two versions of one task whose answers differ."""
    for seed in (3, 4):
        learned = Learned(Trained(embedding_of(seed), (0.5,), (1.0,), 0.0))
        monkeypatch.setattr(training, "learn", lambda *arguments, learned=learned, **named: learned)
        desk.learn(TRAIN, init="sst2", test=TEST)
    return desk


def _log_loss(predictor: Predictor, version: int) -> float:
    answers = predictor.predict([{"task": "mood", "ref": f"v{version}", "text": row["text"]} for row in TEST])
    labels = sorted({str(row["label"]) for row in TEST})
    right = [a.probabilities[labels.index(str(row["label"]))] for a, row in zip(answers, TEST, strict=True)]
    return float(-np.log(right).mean())


def test_report_predictions_bundle_and_comparison_tell_the_same(two_versions: Desk, tmp_path: Path) -> None:
    desk, predictor = two_versions, Predictor(two_versions.services)
    losses = {version.version: version.metrics["test"]["log_loss"]["value"] for version in desk.versions("mood")}
    assert abs(losses[1] - losses[2]) > 0.001
    for number, loss in losses.items():
        assert _log_loss(predictor, number) == pytest.approx(loss, abs=1e-5)
        fetch(desk.services, f"mood@v{number}", tmp_path / str(number), bundle=True)
        assert _log_loss(Predictor(tmp_path / str(number)), number) == pytest.approx(loss, abs=1e-5)
    shared = compare(desk.services, "mood@v1", "mood@v2").to_document().to_json()
    assert [shared[side]["shared"]["log_loss"]["value"] for side in ("a", "b")] == pytest.approx([losses[1], losses[2]])


def test_every_door_tells_the_same_probabilities(two_versions: Desk, tmp_path: Path) -> None:
    services = two_versions.services
    inputs = [{"task": "mood", "ref": ref, "text": str(row["text"])} for ref in ("v1", "v2") for row in TEST[:8]]
    expected = Predictor(services).predict(inputs)
    assert [prediction.probability for prediction in expected[:8]] != [
        prediction.probability for prediction in expected[8:]
    ]
    headers = bearer(services.database, "read")
    with TestClient(create_app(services.settings), "http://localhost", headers=headers) as door:
        answers = door.post("/v1/predict", json={"inputs": inputs}).json()["predictions"]
    place = Place(tmp_path, Path(services.settings.base))  # its home is the desk's
    for number in (1, 2):
        texts = place.write(f"{number}.jsonl", [{"text": row["text"]} for row in TEST[:8]])
        answers += place.json("predict", f"mood@v{number}", "--input", texts)["predictions"]
    for answer, predicted in zip(answers, [*expected, *expected], strict=True):
        assert (answer["label"], answer["version"]) == (predicted.label, predicted.version)
        assert answer["probability"] == pytest.approx(predicted.probability, abs=1e-5)


def test_few_rows_are_trained_on_by_the_service_s_own_recipe(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "FewShotSettings", FewShotSettings)
    result = desk.learn(opinions(24), init="sst2")
    assert result["validation_kind"] == "cross-validated"
    assert result["training"]["steps"] == len(result["training"]["loss"]) == FewShotSettings.steps
    assert result["training"]["chosen_on"] is None
    assert [round(point["rows"]) for point in result["more_rows"]["points"]] == [9, 18]


def test_rows_that_the_folds_contradict_are_warned_of(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    doubted = [Doubt(0, 1, 0.9, 0.1)]
    monkeypatch.setattr(Learned, "suspects", lambda *arguments: doubted)
    warnings = desk.learn(opinions(24), init="sst2")["dataset"]["warnings"]
    assert [warning["count"] for warning in warnings if warning["code"] == "contradicted_labels"] == [1]
