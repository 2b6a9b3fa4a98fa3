"""What the client returns is typed; an answer that lacks a key, or has a wrong value, is told by the key."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, answer
from service_answers import CHECKED, COMPARED, INCOMPARABLE, PAIRED, WARNING, carried_page, carried_task
from support.refusals import refused as error_of

from onboard.client import CheckedLabel, DatasetWarning, FlippedAnswers, Onboard

JOB: dict[str, Any] = {"job": "0" * 12, "task": "paws", "state": "queued"}
PATH = f"/v1/jobs/{'0' * 12}"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "x", "label": true}\n', encoding="utf-8")
    return path


def test_a_checked_dataset_is_typed(service: FakeService, tmp_path: Path, rows: Path) -> None:
    service.routes["POST", "/v1/check"] = answer({**CHECKED, "warnings": [WARNING]})
    checked = service.client(tmp_path).check(rows)
    assert (checked.task, checked.kind, checked.rows["train"]) == ("rows", "classification", 8)
    assert checked.labels == (CheckedLabel(label=True, word="yes", train=8, validation=0, test=2),)
    assert checked.warnings == (
        DatasetWarning(
            code="many_integers", message="Numbers.", count=8, remedy="Say: --kind regression", examples=({"label": 1},)
        ),
    )
    assert (checked.estimated_seconds, checked.estimated_seconds_tuned) == (60, 90)
    earlier = {key: value for key, value in CHECKED.items() if key != "estimated_seconds_tuned"}
    service.routes["POST", "/v1/check"] = answer(earlier)
    assert service.client(tmp_path).check(rows).estimated_seconds_tuned is None


def test_compared_versions_are_typed(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", "/v1/tasks/paws/compare"] = answer(COMPARED)
    compared = service.client(tmp_path).compare("paws@v1", "paws@v2")
    assert (compared.better, compared.earlier.version, compared.later.version) == (True, 1, 2)
    assert (compared.earlier.weak, compared.later.confusion) == (True, ((1, 2), (3, 4)))
    assert compared.comparison is not None
    assert (compared.comparison.verdict, compared.comparison.decided_by) == ("better", "answers")
    assert compared.flipped == (FlippedAnswers(label=0, earlier=1, later=0, count=9),)
    service.routes["GET", "/v1/tasks/paws/compare"] = answer(INCOMPARABLE)
    alone = service.client(tmp_path).compare("paws@v1", "paws@v1")
    assert (alone.comparison, alone.earlier.shared, alone.later.confusion) == (None, None, None)


def test_carried_tasks_are_typed(service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/tasks/paws/carry"] = answer(carried_page("paws"))
    (task,) = service.client(tmp_path).carry("paws").carried
    assert (task.task, task.earlier_version, task.version, task.hypernetwork_version) == ("paws", 1, 2, 2)
    assert task.guard is not None
    assert (task.guard.verdict, task.guard.increase) == ("pass", 0)
    assert task.comparison is not None
    assert task.comparison.rows == 40
    unjudged = carried_task("paws", guard=None, comparison=None, metrics=None)
    service.routes["POST", "/v1/tasks/paws/carry"] = answer({**carried_page(), "refused": [unjudged]})
    (refused,) = service.client(tmp_path).carry("paws").refused
    assert (refused.guard, refused.comparison, refused.metrics) == (None, None, None)


def test_a_command_prints_what_the_service_answered_and_nothing_else(
    service: FakeService, tmp_path: Path, rows: Path
) -> None:
    service.routes["POST", "/v1/check"] = answer({**CHECKED, "later": [1.0, 2]})
    service.routes["GET", "/v1/tasks/paws/compare"] = answer({**COMPARED, "later": {"a": 1}})
    service.routes["POST", "/v1/carry"] = answer(carried_page("a", refused=("b",)))
    client = service.client(tmp_path)
    checked = {**CHECKED, "later": [1.0, 2]}
    assert json.dumps(client.check(rows).document) == json.dumps(checked)
    assert json.dumps(client.compare("paws@v1", "paws@v2").document) == json.dumps({**COMPARED, "later": {"a": 1}})
    page = carried_page("a", refused=("b",))
    del page["next"]
    pages: list[Any] = []
    assert json.dumps(client.carry(on_page=pages.append).document) == json.dumps(page)
    assert json.dumps([shown.document for shown in pages]) == json.dumps([page])


WRONG: list[tuple[str, str, dict[str, Any], str, Callable[[Onboard], object]]] = [
    ("GET", PATH, {**JOB, "state": "asleep"}, "state", lambda client: client.job("0" * 12)),
    ("GET", PATH, {**JOB, "version": "2"}, "version", lambda client: client.job("0" * 12)),
    ("GET", PATH, {**JOB, "metrics": []}, "metrics", lambda client: client.report("0" * 12)),
    ("GET", "/v1/jobs", {"jobs": [{**JOB, "state": None}], "next": None}, "state", lambda client: client.jobs()),
    ("GET", "/v1/jobs", {"jobs": 3, "next": None}, "jobs", lambda client: client.jobs()),
    ("GET", "/v1/jobs", {"jobs": [3], "next": None}, "jobs", lambda client: client.jobs()),
    ("GET", "/v1/jobs", {"jobs": [], "next": 3}, "next", lambda client: client.jobs()),
    ("GET", PATH + "/logs", {"job": "0", "state": "asleep"}, "state", lambda client: client.log("0" * 12)),
    ("GET", "/v1/tasks/paws", {"task": "paws", "kind": "poem"}, "kind", lambda client: client.task("paws")),
    ("GET", "/v1/me", {"name": "n", "actor": "a", "scopes": "read"}, "scopes", lambda client: client.me()),
    ("GET", "/v1/tasks/paws/compare", {**COMPARED, "better": 1}, "better",
     lambda client: client.compare("paws@v1", "paws@v2")),
    ("GET", "/v1/tasks/paws/compare", {**COMPARED, "labels": [None]}, "labels",
     lambda client: client.compare("paws@v1", "paws@v2")),
    ("GET", "/v1/tasks/paws/compare", {**COMPARED, "comparison": {**PAIRED, "rows": True}}, "rows",
     lambda client: client.compare("paws@v1", "paws@v2")),
    ("POST", "/v1/carry", {**carried_page(), "refused": {}}, "refused", lambda client: client.carry()),
    ("POST", "/v1/carry", {**carried_page(), "next": 3}, "next", lambda client: client.carry()),
    ("POST", "/v1/predict", {"predictions": []}, "predictions",
     lambda client: client.predict([{"task": "paws", "text": "x"}])),
    ("POST", "/v1/predict", {"predictions": [{"label": [], "probability": 1}]}, "label",
     lambda client: client.predict([{"task": "paws", "text": "x"}])),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "document", "key", "ask"), WRONG)
def test_a_wrong_value_is_told_by_its_key(
    service: FakeService, tmp_path: Path, method: str, path: str, document: Any, key: str, ask: Any
) -> None:
    service.routes[method, path] = answer(document)
    with error_of("answer-count-differs" if key == "predictions" else "answer-key-wrong", wrong=key) as caught:
        ask(service.client(tmp_path))
    assert caught.value.exit_code == 5
    assert not caught.value.retryable


@pytest.mark.parametrize("key", sorted(CHECKED.keys() - {"source", "kind_reason"}))
def test_a_check_that_lacks_a_part_is_told_by_its_key(
    service: FakeService, tmp_path: Path, rows: Path, key: str
) -> None:
    service.routes["POST", "/v1/check"] = answer({name: value for name, value in CHECKED.items() if name != key})
    client = service.client(tmp_path)
    if key.startswith("estimated"):  # one from before does not estimate both ways
        assert getattr(client.check(rows), key) is None
        return
    with error_of("answer-key-missing", missing=key):
        client.check(rows)


@pytest.mark.parametrize("key", carried_task("paws"))
def test_a_carried_task_that_lacks_a_part_is_told_by_its_key(service: FakeService, tmp_path: Path, key: str) -> None:
    task = carried_task("paws")
    del task[key]
    service.routes["POST", "/v1/carry"] = answer({**carried_page(), "carried": [task]})
    with error_of("answer-key-missing", missing=key):
        service.client(tmp_path).carry()


@pytest.mark.parametrize(
    ("document", "type_"),
    [({"job": "0" * 12, "task": "paws"}, "answer-key-missing"), ({**JOB, "state": "asleep"}, "answer-key-wrong")],
)
def test_waiting_ends_at_an_answer_that_cannot_be_read(
    service: FakeService, tmp_path: Path, document: Any, type_: str
) -> None:
    service.routes["GET", PATH] = answer(document)
    service.routes["GET", PATH + "/events"] = lambda _: httpx.Response(200, text=": alive\n\n")
    with error_of(type_):
        service.client(tmp_path).wait("0" * 12, timeout_seconds=20)
    assert len(service.requests) == 2


def test_waiting_ends_at_an_event_that_cannot_be_read(service: FakeService, tmp_path: Path) -> None:
    event = {"id": "one", "kind": "note", "message": "step 1"}
    service.routes["GET", PATH + "/events"] = lambda _: httpx.Response(200, text=f"data: {json.dumps(event)}\n\n")
    service.routes["GET", PATH] = answer(JOB)
    with error_of("answer-key-wrong", wrong="id"):
        service.client(tmp_path).wait("0" * 12, timeout_seconds=20)


def test_a_version_that_cannot_be_read_is_told_to_whoever_fetches_it(service: FakeService, tmp_path: Path) -> None:
    client = service.client(tmp_path)
    service.routes["GET", "/v1/tasks/paws/embeddings/latest"] = answer({"task": "paws"})
    with error_of("answer-key-missing", missing="version"):
        client.fetch("paws", tmp_path, bundle=False)
    service.routes["GET", "/map.json"] = answer({"tasks": [{"task": "paws", "x": 1.0}]})
    with error_of("answer-key-missing", missing="y"):
        client.map_document()
