"""Predictions through the client: in order, in parts, and by one version."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from fake_service import FakeService, answer
from support.refusals import refused

from onboard import errors
from onboard.api.guarding import BODY_BYTES
from onboard.client import Prediction, Unanswered

ROW = {"task": "paws", "text_a": "a", "text_b": "b"}
ANSWER = {"predictions": [{"label": 1, "probability": 0.9, "task": "paws", "version": 2}]}


def test_predictions_come_in_order(service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/predict"] = answer(ANSWER)
    (prediction,) = service.client(tmp_path).predict([ROW])
    assert (prediction.label, prediction.probability, prediction.task, prediction.version) == (1, 0.9, "paws", 2)
    assert json.loads(service.requests[0].content) == {"inputs": [ROW]}


def test_probabilities_are_asked_for_and_read_with_weakness(service: FakeService, tmp_path: Path) -> None:
    shares = [{"label": 1, "probability": 0.9}, {"label": "1", "probability": 0.1}]
    document = {**ANSWER["predictions"][0], "weak": True, "probabilities": shares}
    service.routes["POST", "/v1/predict"] = answer({"predictions": [document]})
    (prediction,) = service.client(tmp_path).predict([ROW], probabilities=True)
    assert (prediction.labels, prediction.probabilities, prediction.weak) == ((1, "1"), (0.9, 0.1), True)
    assert json.loads(service.requests[0].content) == {"inputs": [ROW], "probabilities": True}


def test_many_inputs_are_sent_in_parts_and_a_wrong_one_stops_them_all(service: FakeService, tmp_path: Path) -> None:
    def echo(request: httpx.Request) -> httpx.Response:
        inputs = json.loads(request.content)["inputs"]
        predictions = [{"label": asked["text"], "probability": 1.0, "task": "cola", "version": 1} for asked in inputs]
        return httpx.Response(200, json={"predictions": predictions})

    service.routes["POST", "/v1/predict"] = echo
    inputs = [{"task": "cola", "text": f"text {number}"} for number in range(600)]
    predictions = service.client(tmp_path).predict(inputs)
    assert [prediction.label for prediction in predictions] == [asked["text"] for asked in inputs]
    assert len(service.requests) == 3
    with refused("input-field-wrong", row=601):
        service.client(tmp_path).predict([*inputs, {"task": "cola", "text": ""}])
    assert len(service.requests) == 3


def test_one_version_answers_all_parts_though_an_alias_moves_meanwhile(service: FakeService, tmp_path: Path) -> None:
    asked: list[set[str | None]] = []

    def moving(request: httpx.Request) -> httpx.Response:
        inputs = json.loads(request.content)["inputs"]
        asked.append({row.get("ref") for row in inputs})
        version = int(inputs[0]["ref"][1:]) if inputs[0].get("ref", "").startswith("v") else 6 + len(asked)
        one = {"label": 1, "probability": 1.0, "task": "cola", "version": version}
        return httpx.Response(200, json={"predictions": [one] * len(inputs)})

    service.routes["POST", "/v1/predict"] = moving
    predictions = service.client(tmp_path).predict([{"task": "cola", "text": "a"}] * 600)
    assert {prediction.version for prediction in predictions} == {7}
    assert asked == [{None}, {"v7"}, {"v7"}]


def test_an_input_without_an_answer_is_an_error_and_the_others_are_answered(
    service: FakeService, tmp_path: Path
) -> None:
    problem = {"status": 404, "code": "not_found", "detail": "There is no gone@latest.", "remedy": "GET /v1/tasks",
               "command": "onboard tasks list", "task": "gone"}  # fmt: skip
    unanswered = {"task": "gone", "ref": "latest", "error": problem}
    service.routes["POST", "/v1/predict"] = answer({"predictions": [ANSWER["predictions"][0], unanswered]})
    inputs = [ROW, {"task": "gone", "text": "a"}]
    first, second = service.client(tmp_path).outcomes(inputs)
    assert isinstance(first, Prediction)
    assert isinstance(second, Unanswered)
    assert (second.task, second.ref, second.error.message) == ("gone", "latest", "There is no gone@latest.")
    assert (type(second.error), second.error.remedy) == (errors.NotFoundError, "onboard tasks list")
    with pytest.raises(errors.NotFoundError, match="There is no gone"):
        service.client(tmp_path).predict(inputs)
    service.routes["POST", "/v1/predict"] = lambda _: httpx.Response(
        404, json=problem, headers={"content-type": "application/problem+json"}
    )
    (alone,) = service.client(tmp_path).outcomes(inputs[1:])
    assert isinstance(alone, Unanswered)
    assert alone.error.message == second.error.message


def test_long_texts_are_sent_in_parts_that_the_service_takes(service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/predict"] = lambda request: httpx.Response(
        200, json={"predictions": ANSWER["predictions"] * len(json.loads(request.content)["inputs"])}
    )
    inputs = [{"task": "paws", "text": "щ" * 20_000}] * 120
    assert len(service.client(tmp_path).predict(inputs)) == 120
    sizes = [len(request.content) for request in service.requests]
    assert 2 <= len(sizes) <= 3
    assert max(sizes) < BODY_BYTES
