"""Label Studio's protocol, replayed: a project connects, people label, the answers follow, and versions are published.

The payloads are those of Label Studio 1.23; `tests/integration/test_a_real_label_studio.py` asks a real one.
"""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from submitting import submit
from support.few_steps import learn_in_few_steps
from support.registry_samples import claim_job

from onboard.api import labelling
from onboard.data.snapshot import load
from onboard.domain.access import Scope
from onboard.domain.dataset import Dataset
from onboard.operations import access
from onboard.pipeline import run as pipeline
from onboard.registry.annotations import AnnotationRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.testing import RecordedProgress
from onboard.versions.delete import delete_task
from onboard.versions.trained_rows import read_snapshot

CONFIG = (
    '<View><Text name="text" value="$text"/><Choices name="weather" toName="text">'
    '<Choice value="good"/><Choice value="bad"/></Choices></View>'
)
SEVERAL = CONFIG.replace('toName="text"', 'toName="text" choice="multiple"')
PAIRS = CONFIG.replace('value="$text"/>', 'value="$text_a"/><Text name="b" value="$text_b"/>')
TEXTS = [f"{word} day number {number}" for number in range(6) for word in ("sunny", "rainy")]


class Project:
    """A project of Label Studio that is connected to the backend of a task.

    Args:
        door: to the service.
        task: in the backend's URL.
        texts: of its tasks, whose ids count from 1.
        config: its labeling configuration.
    """

    def __init__(self, door: TestClient, task: str = "weather", texts: list[str] = TEXTS, config: str = CONFIG) -> None:
        self.door, self.url, self.texts, self.config = door, f"/v1/label-studio/{task}", texts, config

    def post(self, path: str, body: Any) -> Any:
        answer = self.door.post(f"{self.url}/{path}", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def setup(self) -> str:
        body = {
            "project": "1.1795867200", "schema": self.config, "hostname": "http://localhost:8080",
            "access_token": "secret", "extra_params": None,
        }  # fmt: skip
        return str(self.post("setup", body)["model_version"])

    def predict(self, *numbers: int) -> Any:
        tasks = [self.task(number) for number in numbers or range(1, len(self.texts) + 1)]
        params = {"login": None, "password": None, "context": None}
        return self.post("predict", {"tasks": tasks, "label_config": self.config, "project": "1.17", "params": params})

    def answers(self) -> list[str]:
        return [one["result"][0]["value"]["choices"][0] for one in self.predict()["results"]]

    def task(self, number: int) -> dict[str, Any]:
        return {"id": number, "data": {"text": self.texts[number - 1]}, "annotations": [], "project": 1}

    def label(self, number: int, label: str | list[str] | None, *, at: int = 0, **more: Any) -> Any:
        """The webhook of an annotation that was made so many minutes after noon."""
        choices = label if isinstance(label, list) else [label]
        value = {"from_name": "weather", "to_name": "text", "type": "choices", "value": {"choices": choices}}
        annotation = {
            "id": 100 + number, "task": number, "result": [value] if label else [], "was_cancelled": label is None,
            "created_at": "2026-11-28T12:00:00Z", "updated_at": f"2026-11-28T12:{at:02}:00.000000Z", **more,
        }  # fmt: skip
        action = "ANNOTATION_UPDATED" if at else "ANNOTATION_CREATED"
        return self.event(action, annotation=annotation, task=self.task(number))

    def delete(self, number: int) -> Any:
        return self.event("ANNOTATIONS_DELETED", annotations=[{"id": 100 + number}])

    def event(self, action: str, **more: Any) -> Any:
        return self.post("webhook", {"action": action, **more, "project": {"id": 1, "label_config": self.config}})

    def label_truly(self, *numbers: int) -> None:
        for number in numbers:
            self.label(number, "good" if self.texts[number - 1].startswith("sunny") else "bad")

    def state(self) -> Any:
        return self.door.get(self.url).json()


@pytest.fixture
def project(door: TestClient) -> Project:
    return Project(door)


def learn(services: Services) -> None:
    """Run the job that waits, briefly."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        learn_in_few_steps(monkeypatch)
        pipeline.run(claim_job(services.database), services, RecordedProgress())


def rows_of(services: Services, version: str) -> Dataset:
    with services.database.read() as session:
        digest = VersionRepository(session).resolve(version).dataset_digest
    return load(read_snapshot(services, digest))


def labels_of(services: Services, version: str) -> dict[str, Any]:
    return {row.text_a: row.label for row in rows_of(services, version).train}


def test_a_project_connects_and_is_answered_before_there_is_a_label(project: Project) -> None:
    health = project.door.get(f"{project.url}/health").json()
    assert health == {"status": "UP", "model_class": "Onboard"}
    version = project.setup()
    answer = project.predict()
    assert version == answer["model_version"] == "weather-0"
    assert len(answer["results"]) == len(TEXTS)
    for one in answer["results"]:
        (chosen,) = one["result"]
        assert (chosen["from_name"], chosen["to_name"], chosen["type"]) == ("weather", "text", "choices")
        assert chosen["value"]["choices"][0] in ("good", "bad")
        assert 0.5 <= chosen["score"] <= 1
        assert 0 <= one["score"] <= 1
    assert project.state() == {
        "task": "weather", "annotations": 0, "texts": 0, "revision": 0, "job": None,
        "refit_seconds": project.state()["refit_seconds"],
    }  # fmt: skip


def test_answers_follow_the_annotations_and_a_correction(project: Project) -> None:
    project.label_truly(*range(1, 9))
    truth = ["good", "bad"] * 6
    assert project.answers() == truth
    assert project.setup() == project.predict()["model_version"] == "weather-8"
    assert project.state()["refit_seconds"] > 0
    for number in range(1, 9):
        project.label(number, "bad" if number % 2 else "good", at=5)
    assert project.answers() == ["bad", "good"] * 6


def test_webhooks_that_arrive_twice_or_late_change_nothing(project: Project, tiny_services: Services) -> None:
    assert project.label(1, "good")["kept"] == 1
    assert project.label(1, "good")["kept"] == 0
    lines = access.changes(tiny_services.database, 10)["changes"]
    assert [line["subject"] for line in lines if line["action"] == "task.annotate"] == ["weather"]
    assert project.label(1, "bad", at=9)["kept"] == 1
    assert project.label(1, "good", at=4)["kept"] == 0
    assert project.label(1, "bad", at=9)["kept"] == 0
    assert (project.state()["revision"], project.state()["annotations"]) == (2, 1)
    assert project.delete(1)["kept"] == 1
    assert project.label(1, "good", at=30)["kept"] == 0
    assert project.delete(2)["kept"] == 1  # before it is known
    assert project.label(2, "good")["kept"] == 0
    assert project.state()["texts"] == 0


def test_what_is_no_label_of_a_text_is_told_and_answered_without_a_label(project: Project) -> None:
    image = {"id": 7, "data": {"image": "https://example.org/a.png"}, "annotations": []}
    region = {"from_name": "box", "type": "rectanglelabels", "value": {"x": 1, "y": 1, "rectanglelabels": ["good"]}}
    annotation = {"id": 7, "task": 7, "result": [region], "updated_at": "2026-11-28T12:00:00Z"}
    told = project.event("ANNOTATION_CREATED", annotation=annotation, task=image)
    assert (told["kept"], told["left_out"][0]["number"]) == (0, "7")
    body = {"tasks": [image, project.task(1)], "label_config": CONFIG}
    empty, answered = project.post("predict", body)["results"]
    assert (empty["result"], empty["score"], len(answered["result"])) == ([], 1.0, 1)
    alone = project.post("predict", {"tasks": [image], "label_config": CONFIG})
    assert alone["results"] == [empty]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("setup", {"schema": "<View/>"}, 422),
        ("setup", {"schema": SEVERAL.replace("multiple", "some")}, 422),
        ("setup", {}, 422),
        ("predict", {"tasks": [], "label_config": "<Image/>"}, 422),
        ("predict", {"tasks": "all", "label_config": CONFIG}, 422),
        ("webhook", [], 422),
        ("webhook", {"action": "ANNOTATION_CREATED", "project": {"label_config": "<View"}}, 422),
        ("webhook", {"action": "PROJECT_UPDATED"}, 200),
        ("webhook", {}, 200),
        ("predict", {"tasks": [], "label_config": CONFIG}, 200),
    ],
)
def test_odd_requests_are_refused_or_change_nothing(project: Project, path: str, body: Any, status: int) -> None:
    answer = project.door.post(f"{project.url}/{path}", json=body)
    assert answer.status_code == status, answer.text
    assert project.state()["annotations"] == 0


def test_a_token_is_the_password_of_label_studio_and_nowhere_else(
    app: FastAPI, tiny_services: Services, door: TestClient
) -> None:
    _, secret = access.create_token(tiny_services.database, "label-studio", [Scope.SUBMIT, Scope.READ])
    _, reader = access.create_token(tiny_services.database, "reader", [Scope.READ])

    def asked(path: str, password: str) -> int:
        given = base64.b64encode(f"onboard:{password}".encode()).decode()
        return door.get(path, headers={"Authorization": f"Basic {given}"}).status_code

    health = "/v1/label-studio/weather/health"
    assert (asked(health, secret), asked(health, "onb_wrong"), asked(health, "")) == (200, 401, 401)
    assert asked("/v1/tasks", secret) == 401
    assert door.get(health, headers={"Authorization": "Basic ###"}).status_code == 401
    headers = {"Authorization": f"Bearer {reader}"}
    assert door.post("/v1/label-studio/weather/webhook", json={}, headers=headers).status_code == 403


def test_annotations_become_a_task_and_then_its_next_versions(
    project: Project, app: FastAPI, tiny_services: Services
) -> None:
    project.label_truly(1)
    assert project.event("START_TRAINING")["job"] is None  # one label is no task
    project.label_truly(*range(2, 9))
    job = project.event("START_TRAINING")["job"]
    assert job is not None
    assert project.event("START_TRAINING")["job"] == job == project.state()["job"]
    assert app.state.started == ["default", "default"]  # while it waits
    learn(tiny_services)
    assert labels_of(tiny_services, "weather@v1") == {
        text: "good" if text.startswith("sunny") else "bad" for text in TEXTS[:8]
    }
    project.label(1, "bad", at=7)
    project.delete(2)
    project.label_truly(9)
    assert project.state()["job"] is None
    project.event("START_TRAINING")
    learn(tiny_services)
    with tiny_services.database.read() as session:
        change = VersionRepository(session).resolve("weather@v2").change
    assert change is not None
    assert (change["file"], change["counts"]["added"], change["counts"]["replaced"], change["counts"]["removed"]) == (
        "annotations", 1, 1, 1,
    )  # fmt: skip
    after = labels_of(tiny_services, "weather@v2")
    assert (after[TEXTS[0]], TEXTS[1] in after, after[TEXTS[8]], len(after)) == ("bad", False, "good", 8)
    learned = project.state()["job"]
    assert project.label(2, None, at=9)["kept"] == 0  # what was deleted stays deleted
    assert project.event("START_TRAINING")["job"] == learned
    assert app.state.labelling.publish("weather", "tester", fast=True).id == learned  # in full already


def test_annotations_are_published_by_themselves_once_it_is_quiet(
    project: Project, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.label_truly(1, 2, 3)
    monkeypatch.setattr(labelling, "QUIET_SECONDS", 0.05)
    project.label_truly(4)
    until = time.monotonic() + 60
    while project.state()["job"] is None and time.monotonic() < until:
        time.sleep(0.05)
    job = project.door.get(f"/v1/jobs/{project.state()['job']}").json()
    assert (job["task"], job["owner"]) == ("weather", "tester")
    learn(tiny_services)
    before = labels_of(tiny_services, "weather@v1")
    assert set(before) == set(TEXTS[:4])
    assert project.event("START_TRAINING")["job"] != job["job"]  # the same rows, in full
    learn(tiny_services)
    assert labels_of(tiny_services, "weather@v2") == before


def test_a_task_that_exists_answers_with_its_rows_and_gets_more(
    project: Project, rows: bytes, tiny_services: Services
) -> None:
    submit(project.door, rows, fast="true")
    learn(tiny_services)
    assert project.setup() == "weather-0"
    assert project.answers() == ["good", "bad"] * 6
    project.label(1, "bad", at=1)
    project.label(2, "foggy")  # a label that the project no longer lists
    project.event("START_TRAINING")
    learn(tiny_services)
    stored = [json.loads(line) for line in rows.splitlines()]
    after = labels_of(tiny_services, "weather@v2")
    assert (after[TEXTS[0]], after[TEXTS[1]]) == ("bad", "foggy")
    assert len(after) == len({row["text"] for row in stored} | set(TEXTS))


def test_a_project_whose_texts_do_not_fit_the_task_is_refused(
    project: Project, rows: bytes, tiny_services: Services
) -> None:
    submit(project.door, rows, fast="true")
    learn(tiny_services)
    answer = project.door.post(f"{project.url}/setup", json={"schema": PAIRS})
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (409, "label-studio-other-texts")
    shipped = project.door.post("/v1/label-studio/sst2/setup", json={"schema": CONFIG})
    assert shipped.status_code == 409, shipped.text  # its rows are not here


def wet(text: str) -> list[str]:
    """The labels of a text of several words."""
    return [label for word, label in (("sunny", "good"), ("rainy", "bad")) if word in text]


@pytest.fixture
def several(door: TestClient) -> Project:
    """A project in which a text may have several labels."""
    texts = [f"{words} day number {number}" for number in range(6) for words in ("sunny", "rainy", "sunny and rainy")]
    return Project(door, texts=texts, config=SEVERAL)


def choices_of(answer: Any) -> list[list[str]]:
    return [one["result"][0]["value"]["choices"] if one["result"] else [] for one in answer["results"]]


def test_several_labels_are_suggested_learned_and_published(several: Project, tiny_services: Services) -> None:
    assert several.setup() == "weather-0"
    before = several.predict()
    assert all(len(chosen) == 1 for chosen in choices_of(before))  # without a label the likeliest one is suggested
    for number in range(1, 13):
        assert several.label(number, wet(several.texts[number - 1]))["kept"] == 1
    after = several.predict()
    assert after["model_version"] == "weather-12"
    truth = [wet(text) for text in several.texts]
    assert sum(map(lambda one, other: one == other, choices_of(after), truth)) >= 15
    assert all(0 <= one["score"] <= 1 for one in after["results"])
    assert all(0.5 <= one["result"][0]["score"] <= 1 for one in after["results"] if one["result"])
    assert several.state()["refit_seconds"] > 0
    several.event("START_TRAINING")
    learn(tiny_services)
    with tiny_services.database.read() as session:
        version = VersionRepository(session).resolve("weather@v1")
    assert (version.task_kind, version.labels) == ("multilabel", ("bad", "good"))
    assert labels_of(tiny_services, "weather@v1") == {
        text: json.dumps(sorted(wet(text))) for text in several.texts[:12]
    }  # fmt: skip
    several.label(1, ["bad", "good"], at=3)
    several.delete(2)
    several.label(13, ["foggy", "good"])  # a label that the project no longer lists
    several.event("START_TRAINING")
    learn(tiny_services)
    changed = labels_of(tiny_services, "weather@v2")
    assert (changed[several.texts[0]], several.texts[1] in changed) == ('["bad", "good"]', False)
    assert (changed[several.texts[12]], len(changed)) == ('["foggy", "good"]', 12)


def test_one_set_in_all_rows_is_no_task_yet(several: Project) -> None:
    several.label(1, ["good", "bad"])
    several.label(2, ["bad", "good"])
    assert several.event("START_TRAINING")["job"] is None
    several.label(3, ["bad"])
    assert several.event("START_TRAINING")["job"] is not None


def test_unusable_sets_are_told_and_kept_as_unlabeled(several: Project) -> None:
    told = several.label(1, ["good", " "])
    assert told["left_out"][0]["reason"] == "it has no usable choice for the whole text"
    assert several.label(2, [])["left_out"][0]["number"] == "102"
    assert several.state()["texts"] == 0


def test_a_project_asks_for_as_many_labels_as_the_task_has(
    several: Project, project: Project, rows: bytes, tiny_services: Services
) -> None:
    submit(project.door, rows, fast="true")
    learn(tiny_services)
    body = {"schema": SEVERAL}
    answer = several.door.post(f"{several.url}/setup", json=body)
    assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (409, "label-studio-other-choices")
    several.label(1, ["good", "bad"])
    published = several.door.post(f"{several.url}/webhook", json={"action": "START_TRAINING", "project": {"id": 1}})
    assert (published.status_code, published.json()["wanted"]) == (409, "several labels")
    tags = Project(project.door, "tags", several.texts, SEVERAL)
    for number in range(1, 7):
        tags.label(number, wet(tags.texts[number - 1]))
    tags.event("START_TRAINING")
    learn(tiny_services)
    single = Project(project.door, "tags").door.post("/v1/label-studio/tags/setup", json={"schema": CONFIG})
    assert (single.status_code, single.json()["has"]) == (409, "several labels")
    assert tags.setup().startswith("tags-")


def test_a_deleted_task_takes_its_annotations_along(project: Project, tiny_services: Services) -> None:
    project.label_truly(1, 2)
    Project(project.door, "other").label_truly(1)
    delete_task(tiny_services, "weather")
    with tiny_services.database.read() as session:
        repository = AnnotationRepository(session)
        assert (repository.list("weather"), len(repository.list("other"))) == ([], 1)


def test_another_process_answers_alike(project: Project, app: FastAPI) -> None:
    project.label_truly(*range(1, 9))
    before = project.predict()
    app.state.labelling = labelling.Labelling(app.state.services, app.state.predictions)
    after = project.predict()
    assert [one["result"][0]["value"] for one in after["results"]] == [
        one["result"][0]["value"] for one in before["results"]
    ]
