from __future__ import annotations

import errno
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openapi_spec_validator
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.callers import bearer
from support.published import add_version
from support.refusals import refused

from onboard.api import prediction_queue
from onboard.api.access import is_open, routes_of, scope_of
from onboard.api.prediction_queue import PredictionQueue
from onboard.api.problems import of_error
from onboard.bases import Base
from onboard.broker.trouble import trouble
from onboard.domain.access import Scope
from onboard.errors import OnboardError
from onboard.registry.services import Services
from onboard.storage.files import errors_in_our_words

FINE = {"task": "sst2", "text": "fine"}


def test_the_description_names_every_operation_once_and_every_error_a_problem(app: FastAPI) -> None:
    operations = [operation for path in app.openapi()["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    assert all(
        operation["responses"]["default"] == {"$ref": "#/components/responses/Problem"} for operation in operations
    )
    assert all("422" not in operation["responses"] for operation in operations)


def test_the_reference_loads_a_viewer_of_ours_and_our_description(door: TestClient) -> None:
    page = door.get("/docs").text
    for name in ("swagger-ui.js", "swagger-ui.css", "reference.js"):
        (place,) = re.findall(rf'"(/static/{re.escape(name)}\?digest=\w+)"', page)
        assert door.get(place).status_code == 200
    assert 'data-description="/openapi.json"' in page
    assert re.findall(r"https?://", page) == []


def test_what_the_reference_fills_in_works_on_a_fresh_service(door: TestClient) -> None:
    """Those that name a job, a prior, a file or a secret of somebody's have nothing to fill in."""
    document, sent = door.get("/openapi.json").json(), 0
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parameters = [parameter for parameter in operation.get("parameters", []) if parameter["required"]]
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            if path == "/v1/tasks/{task}/readouts/{ref}.safetensors" or path.endswith("lineage.svg"):
                continue  # not every version has a readout; a picture needs no example
            if not all("example" in parameter for parameter in parameters) or (method != "get" and body is None):
                assert method != "get" or {"job", "digest", "form"} & {parameter["name"] for parameter in parameters}, (
                    path
                )
                continue
            place = path.format(**{one["name"]: one["example"] for one in parameters if one["in"] == "path"})
            query = {one["name"]: one["example"] for one in parameters if one["in"] == "query"}
            answer = door.request(method, place, params=query, json=body)
            assert answer.status_code < 300, (method, path, answer.text)
            sent += 1
    assert sent > 25


def test_nothing_is_filled_in_that_changes_a_task(door: TestClient) -> None:
    paths = door.get("/openapi.json").json()["paths"]
    for path, method in (("/v1/tasks/{task}", "delete"), ("/v1/tasks/{task}/aliases/{alias}", "put")):
        assert all("example" not in parameter for parameter in paths[path][method]["parameters"])
    assert {tag for path in paths.values() for operation in path.values() for tag in operation["tags"]} == {
        tag["name"] for tag in door.get("/openapi.json").json()["tags"]
    }


def test_what_is_not_there_is_a_problem(door: TestClient) -> None:
    for method, path, status in (("GET", "/v1/nothing", 404), ("PUT", "/v1/jobs", 405), ("GET", "/v1/jobs/none", 404)):
        answer = door.request(method, path)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "status", "detail", "code", "remedy"} <= answer.json().keys()


def test_a_fault_is_logged_and_says_nothing_of_the_inside(
    door: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("password is 123")

    monkeypatch.setattr("onboard.api.routes.queue.queues", fail)
    answer = door.get("/v1/queue")
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    assert "123" not in answer.text
    assert "password is 123" in caplog.text


@pytest.mark.parametrize("error", [ConnectionRefusedError("no"), PermissionError("no"), OSError(errno.ENOSPC, "full")])
def test_a_store_that_fails_is_not_described_to_callers(error: OSError) -> None:
    with pytest.raises(OnboardError) as failed, errors_in_our_words("s3://inside", "x", "SETTING"):
        raise error
    assert failed.value.data["store"] == "s3://inside"
    answer = of_error(failed.value)
    document = json.loads(answer.body)
    assert (answer.status_code, document["code"]) == (503, "storage")
    assert not any(word in bytes(answer.body).decode() for word in ("inside", "SETTING"))


def test_where_the_broker_is_stands_in_the_log_and_in_no_answer(
    door: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def ring(*_: object) -> None:
        raise trouble(ConnectionRefusedError("broker.inside refused"), "amqp://me:hush@broker.inside:5672/x?key=hush")

    monkeypatch.setattr("onboard.broker.doorbell.CeleryDoorbell.ring", ring)
    answer = door.post("/v1/queue/resume", json={"queue": "nightly"})  # a submission rings from a process of its own
    assert answer.json()["warning"].startswith("The broker cannot be used.")
    assert not any(word in answer.text for word in ("inside", "hush", "ONBOARD_"))
    assert "broker.inside:5672" in caplog.text
    assert "hush" not in caplog.text


def test_a_paused_queue_is_shown_so(door: TestClient) -> None:
    assert door.post("/v1/queue/pause", json={"queue": "nightly"}).json()["paused"] is True
    queues = {queue["queue"]: queue for queue in door.get("/v1/queue").json()["queues"]}
    assert queues["nightly"]["paused"] is True
    assert door.post("/v1/queue/resume", json={"queue": "nightly"}).json()["paused"] is False


def test_a_worker_that_is_not_there_cannot_be_drained(door: TestClient) -> None:
    assert door.post("/v1/workers/nobody/drain").status_code == 404
    assert door.get("/v1/workers").json()["workers"] == []


def test_metrics_are_for_prometheus(door: TestClient) -> None:
    answer = door.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "onboard_database_up 1.0" in answer.text


def test_tasks_may_be_mixed_and_a_wrong_input_is_named(door: TestClient) -> None:
    answer = door.post("/v1/predict", json={"inputs": [FINE, {"task": "sst2", "ref": "v1", "text": "bad"}]})
    assert [prediction["task"] for prediction in answer.json()["predictions"]] == ["sst2", "sst2"]
    wrong = door.post("/v1/predict", json={"inputs": [FINE, {**FINE, "text_b": "two"}]})
    assert (wrong.status_code, wrong.json()["row"], wrong.json()["field"]) == (422, 2, "text_b")


def test_an_answer_is_one_of_the_labels_that_are_asked_for(
    door: TestClient, tiny_services: Services, tiny_base: Base
) -> None:
    add_version(tiny_services, tiny_base, "kinds", ("a", "b", True), ("good", "bad", "film"))
    labels = [True, "b"]
    body = {"inputs": [{"task": "kinds", "text": "fine", "labels": labels}], "probabilities": True}
    (answer,) = door.post("/v1/predict", json=body).json()["predictions"]
    assert answer["label"] in labels
    assert [share["label"] for share in answer["probabilities"]] == ["b", True]
    for wrong in (["a"], ["a", "a"], ["a", "nothing"], ["a", 1]):
        refused = door.post("/v1/predict", json={"inputs": [FINE, {**FINE, "task": "kinds", "labels": wrong}]})
        assert (refused.status_code, refused.json()["row"], refused.json()["field"]) == (422, 2, "labels")
        assert refused.json()["labels"] == ["a", "b", True]
        assert "a, b, true" in refused.json()["remedy"]


def test_a_row_of_an_unknown_task_has_an_error_and_the_others_are_answered(door: TestClient) -> None:
    unknown = {"task": "nothing", "text": "fine"}
    alone = door.post("/v1/predict", json={"inputs": [unknown]})
    assert alone.status_code == 404
    for _ in range(2):  # before a model is loaded, and after
        none = door.post("/v1/predict", json={"inputs": [unknown, {**FINE, "ref": "v7"}]})
        assert [row["error"]["status"] for row in none.json()["predictions"]] == [404, 404]
        answer = door.post("/v1/predict", json={"inputs": [FINE, unknown, {**FINE, "ref": "v7"}]})
        assert answer.status_code == 200
        first, second, third = answer.json()["predictions"]
        assert first["task"] == "sst2"
        assert "error" not in first
        assert second == {"task": "nothing", "ref": "latest", "error": alone.json()}
        assert (third["ref"], third["error"]["code"]) == ("v7", "not_found")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"text_a": "one"}, "text_a"),
        ({"text_a": "one", "text_b": "two"}, "text_a"),
        ({"text": None}, "text"),
        ({"text": None, "text_a": "one"}, "text_b"),
        ({"ref": "v 1"}, "ref"),
        ({"task": "../up"}, "task"),
    ],
)
def test_a_text_or_a_pair_and_never_both(door: TestClient, wrong: dict[str, Any], field: str) -> None:
    answer = door.post("/v1/predict", json={"inputs": [FINE, FINE | wrong]})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["row"], problem["field"]) == (422, "input", 2, field)


def test_probabilities_are_answered_where_they_are_asked_for_and_weakness_always(
    door: TestClient, tiny_services: Services, tiny_base: Base
) -> None:
    add_version(tiny_services, tiny_base, "mood", ("sad", "happy"), ("sad", "happy"), weak=True)
    inputs = [FINE, {"task": "mood", "text": "fine"}]
    plain = door.post("/v1/predict", json={"inputs": inputs}).json()["predictions"]
    common = {"label", "probability", "task", "version", "weak"}
    assert [(set(answer), answer["weak"]) for answer in plain] == [(common, False), (common | {"unmeasured"}, True)]
    full = door.post("/v1/predict", json={"inputs": inputs, "probabilities": True}).json()["predictions"]
    assert [share["label"] for share in full[1]["probabilities"]] == ["sad", "happy"]
    assert max(share["probability"] for share in full[1]["probabilities"]) == full[1]["probability"]


def test_a_task_of_pairs_says_so_and_refuses_one_text(
    door: TestClient, tiny_services: Services, tiny_base: Base
) -> None:
    add_version(tiny_services, tiny_base, "alike", ("no", "yes"), ("no", "yes"), pairs=True)
    answer = door.post("/v1/predict", json={"inputs": [FINE, {"task": "alike", "text": "one"}]})
    assert (answer.status_code, answer.json()["row"], answer.json()["fields"]) == (422, 2, ["text_a", "text_b"])
    assert "text_a and text_b" in answer.json()["detail"]
    task = door.get("/v1/tasks/alike").json()
    assert (task["pairs"], task["latest"]["pairs"]) == (True, True)
    assert [version["pairs"] for version in door.get("/v1/tasks/alike/versions").json()["versions"]] == [True]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "inputs"),
        ({"inputs": []}, "inputs"),
        ({"inputs": [FINE] * 257}, "inputs"),
        ({"inputs": [{**FINE, "surprise": 1}]}, "inputs.0.surprise"),
        ({"inputs": [{**FINE, "text": "x" * 100_001}]}, "inputs.0.text"),
    ],
)
def test_a_wrong_body_names_its_field(door: TestClient, body: dict[str, Any], field: str) -> None:
    answer = door.post("/v1/predict", json=body)
    assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (422, "input", field)


def test_who_may_read_sees_queues_and_workers_and_changes_none(app: FastAPI, tiny_services: Services) -> None:
    headers = bearer(tiny_services.database, Scope.READ)
    with TestClient(app, "http://localhost", headers=headers) as reader:
        assert [reader.get(path).status_code for path in ("/v1/queue", "/v1/workers")] == [200, 200]
        changes = ("/v1/queue/pause", "/v1/queue/resume", "/v1/workers/one/drain")
        assert [reader.post(path, json={}).json()["code"] for path in changes] == ["scope"] * 3


def test_generators_of_clients_accept_the_description(app: FastAPI) -> None:
    openapi_spec_validator.validate(app.openapi())


def test_the_documentation_lists_every_route_with_its_scope_and_every_code(app: FastAPI) -> None:
    docs = Path(__file__).parents[3] / "docs"
    page = "".join(
        (docs / name).read_text(encoding="utf-8") for name in ("reference/http-api.md", "how-to/use-the-pages.md")
    )
    listed = dict(re.findall(r"^\| `([A-Z]+ /[^`?]*)[^`]*` \| (\w+) \|", page, re.MULTILINE))
    routes = {
        f"{method} {(route.path or '').replace(':path', '')}": str(scope_of(route) or unscoped(route.path or ""))
        for route in routes_of(app)
        for method in getattr(route, "methods", None) or ()
    }
    assert listed == routes
    codes = {
        code for row in re.findall(r"^\| (`[a-z_`, ]+`) \| \d", page, re.MULTILINE) for code in row.split("`")[1::2]
    }
    assert set(kinds(OnboardError)) - codes == {
        "job_failed",
        "cancelled",
        "out_of_memory",
        "slot_taken",
        "answer",
    }  # these a job has, or a client, no request


def unscoped(path: str) -> str:
    return "none" if is_open(path) else "any"


def kinds(error: type[OnboardError]) -> Iterator[str]:
    for kind in error.__subclasses__():
        yield kind.code
        yield from kinds(kind)


def test_a_form_offers_no_null_that_it_would_not_take(app: FastAPI) -> None:
    for path in ("/v1/jobs", "/v1/check"):
        body = app.openapi()["paths"][path]["post"]["requestBody"]
        assert "null" not in json.dumps(body)


def test_the_model_is_loaded_once_and_those_who_find_no_place_are_sent_away(
    tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, inside, proceed = [], threading.Event(), threading.Event()

    class Slow:
        def __init__(self, services: Services, *, record: bool) -> None:
            assert record
            loaded.append(services)

        def answer_others(self, requests: Any, before_batch: Any) -> list[str]:
            inside.set()
            assert proceed.wait(30)
            return ["answer"]

    monkeypatch.setattr("onboard.serving.predictor.Predictor", Slow)
    monkeypatch.setattr(prediction_queue, "MOST_WAITING", 1)
    counter = PredictionQueue(tiny_services)
    answers: list[Any] = []
    first = threading.Thread(target=lambda: answers.append(counter.predict([FINE])))
    first.start()
    assert inside.wait(30)
    with refused("rate-limit"):
        counter.predict([FINE])
    proceed.set()
    first.join()
    assert [*answers, counter.predict([FINE])] == [["answer"], ["answer"]]
    assert len(loaded) == 1
