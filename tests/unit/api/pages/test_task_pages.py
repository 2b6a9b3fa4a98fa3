"""The list of tasks, and one task: versions, names of versions, comparisons, texts to try."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from support.browsing import EVIL, without_quoted_scripts
from support.registry_samples import register_sample_base, running_job, sample_task, sample_version

from onboard.api.shelf import Shelf
from onboard.domain.methods import OWN_START
from onboard.domain.prediction import Prediction
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.report.versions import measured_text, versions_chart


def publish(database: Database, task: str, *, accuracy: float | None = None, **changes: Any) -> int:
    """Another version of the task; its number."""
    job = running_job(database, task)
    metric = {"value": accuracy, "low": 0.1, "high": 0.9, "n": 120}
    metrics = {} if accuracy is None else {"test": {"accuracy": metric}, "validation": None}
    version = replace(sample_version(task, job=job.id), metrics=metrics, **changes)
    labels = {"labels": version.labels, "words": version.words}
    with database.write() as session:
        published = VersionRepository(session).publish(
            version, replace(sample_task(task), **labels), attempt=job.attempt, result={"task": task}
        )
    return published.version


@pytest.fixture
def database(services: Services) -> Database:
    """With a base that versions belong to."""
    register_sample_base(services.database)
    return services.database


def tasks_on(page: str) -> list[str]:
    return re.findall(r'<a href="/tasks/([\w-]+)">', page)


def test_a_version_without_an_embedding_says_what_made_it(browser: TestClient, database: Database) -> None:
    publish(database, "mood", method="compacter", parent=OWN_START)
    page = browser.get("/tasks/mood").text
    assert "<td>–</td><td>–</td><td>compacter</td>" in page
    assert 'weights = Onboard("URL", "TOKEN").weights("mood")' in unescape(page)
    assert "– (compacter)" in browser.get("/tasks").text


def test_tasks_are_found_by_name_label_and_weakness(browser: TestClient, database: Database) -> None:
    publish(database, "mood", accuracy=0.8)
    publish(database, "moody", weak=True)
    publish(database, "topic_1", labels=("sport", "art"), words=("sport", "art"))
    for query, shown in (
        ("", ["mood", "moody", "topic_1"]),
        ("?name=mood", ["mood", "moody"]),
        ("?name=_1", ["topic_1"]),
        ("?name=%20TOPIC", ["topic_1"]),
        ("?name=%25", []),
        ("?label=sport", ["topic_1"]),
        ("?weak=yes", ["moody"]),
        ("?weak=no&name=m", ["mood"]),
        ("?shipped=yes", []),
        ("?after=mood", ["moody", "topic_1"]),
    ):
        assert tasks_on(browser.get(f"/tasks{query}").text) == shown, query
        assert [task["task"] for task in browser.get(f"/tasks.json{query}").json()["tasks"]] == shown, query
    assert "accuracy 80% (10–90%) on 120 test rows" in browser.get("/tasks").text
    answer = browser.get("/tasks?weak=perhaps")
    assert (answer.status_code, "yes" in answer.text) == (422, True)


def test_tasks_are_found_by_the_family_that_the_map_shows(
    browser: TestClient, page_app: FastAPI, database: Database
) -> None:
    for name in ("mood", "topic"):
        publish(database, name)
    tasks = [{"task": "mood", "family": "sentiment"}, {"task": "topic", "family": "topics"}]
    document = {"tasks": tasks, "families": [{"family": "sentiment"}, {"family": "topics"}]}
    page_app.state.maps = SimpleNamespace(document=lambda: document)
    assert tasks_on(browser.get("/tasks?family=topics").text) == ["topic"]
    assert tasks_on(browser.get("/tasks?family=topics&name=mood").text) == []
    answer = browser.get("/tasks?family=weather")
    assert (answer.status_code, "It may be sentiment, topics." in answer.text) == (422, True)


def test_many_tasks_have_pages(browser: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.api.pages.tasks.PAGE", 2)
    for name in ("a", "b", "c"):
        publish(database, name)
    page = browser.get("/tasks?name=").text
    (following,) = re.findall(r'href="([^"]*)" rel="next"', page)
    assert tasks_on(page) + tasks_on(browser.get(unescape(following)).text) == ["a", "b", "c"]


def test_no_tasks_teach_how_to_make_one(browser: TestClient) -> None:
    assert "<code>onboard submit FILE</code>" in browser.get("/tasks").text


def test_a_task_shows_its_versions_names_and_how_to_fetch_it(browser: TestClient, database: Database) -> None:
    for accuracy in (0.7, 0.8):
        publish(database, "mood", accuracy=accuracy)
    page = browser.get("/tasks/mood").text
    for text in ("Accuracy of each version", "latest means v2", "onboard fetch mood", "onboard tasks show mood"):
        assert text.lower() in page.lower(), text
    assert page.count("(10–90%) on 120 test rows") == 2
    assert "/v1/tasks/mood/lineage.svg" in page
    document = browser.get("/tasks/mood.json").json()
    assert [version["version"] for version in document["versions"]] == [2, 1]
    assert [move["version"] for move in document["moves"]["latest"]] == [2, 1]


def test_many_versions_have_pages(browser: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.api.pages.task.PAGE", 2)
    for _ in range(3):
        publish(database, "mood")
    page = browser.get("/tasks/mood").text
    (following,) = re.findall(r'href="([^"]*)" rel="next"', page)
    assert re.findall(r'<th scope="row">v(\d)', page) == ["3", "2"]
    assert re.findall(r'<th scope="row">v(\d)', browser.get(following).text) == ["1"]


def test_promoted_and_rolled_back_with_a_reason(browser: TestClient, database: Database) -> None:
    for _ in range(2):
        publish(database, "mood")
    for version, because in ((1, "it is\nold"), (2, "")):
        form = {"version": version, "alias": "good", "because": because, "seen": ["latest=2", f"good={version - 1}"]}
        answer = browser.post("/tasks/mood/promote", data=form)
        assert (answer.status_code, answer.headers.get("location")) == (303, "/tasks/mood"), answer.text
    answer = browser.post("/tasks/mood/rollback", data={"alias": "good", "seen": 2, "because": "it was wrong"})
    assert answer.status_code == 303
    document = browser.get("/tasks/mood.json").json()
    assert document["aliases"] == {"good": 1, "latest": 2}
    reasons = [(move["version"], move["reason"]) for move in document["moves"]["good"]]
    assert reasons == [(1, "rollback: it was wrong"), (2, "promoted"), (1, "promoted: it is old")]
    assert browser.post("/tasks/mood/rollback", data={"alias": "good", "seen": 1}).status_code == 409
    assert "it was wrong" in browser.get("/tasks/mood").text


def test_who_saw_something_older_is_told_what_changed_meanwhile(browser: TestClient, database: Database) -> None:
    for _ in range(2):
        publish(database, "mood")
    form = {"version": 1, "alias": "good", "seen": "latest=2"}
    assert browser.post("/tasks/mood/promote", data=form).status_code == 303
    for place, late in (("promote", {**form, "version": 2}), ("rollback", {"alias": "good", "seen": 2})):
        answer = browser.post(f"/tasks/mood/{place}", data=late)
        assert (answer.status_code, "is now v1" in answer.text) == (412, True)


def test_a_canary_is_started_shown_with_its_comparison_and_ended(browser: TestClient, database: Database) -> None:
    for _ in range(2):
        publish(database, "mood")
    assert browser.post("/tasks/mood/promote", data={"version": 1, "alias": "good"}).status_code == 303
    form = {"version": 2, "alias": "good", "share": "10%", "seen": "good=v1"}
    assert browser.post("/tasks/mood/promote", data={**form, "share": "10"}).status_code == 422
    assert browser.post("/tasks/mood/promote", data=form).status_code == 303
    page = browser.get("/tasks/mood").text
    assert "v2 answers 10% of its texts as its canary" in page
    assert 'href="/tasks/mood/compare?a=v1&amp;b=v2"' in page
    (seen,) = set(re.findall(r'name="seen" value="(good=v1\+v2:[^"]+)"', page))
    assert browser.post("/tasks/mood/promote", data={**form, "share": "0%", "seen": seen}).status_code == 303
    page = browser.get("/tasks/mood").text
    assert "as its canary" not in page
    assert "good means v1" in page


def test_a_text_is_answered_with_every_probability(browser: TestClient, page_app: FastAPI, database: Database) -> None:
    publish(database, "mood", labels=(EVIL, "good"), words=("bad", "good"))
    asked: list[Any] = []

    class Answers:
        def predict(self, inputs: Any, left: Any) -> list[Prediction]:
            asked.extend(inputs)
            return [Prediction("good", 0.75, "mood", 1, (0.25, 0.75), True, (EVIL, "good"), unmeasured=True)]

        def close(self) -> None: ...

    page_app.state.predictions = Answers()
    answer = browser.post("/tasks/mood/try", data={"text": EVIL, "ref": "v1"})
    page = without_quoted_scripts(answer.text)
    for text in ("<b>good</b>", "75.0%", "25.0%", "weak", "unmeasured"):
        assert text in page
    assert asked == [{"task": "mood", "ref": "v1", "text": EVIL}]


def test_two_versions_side_by_side(browser: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    side = {
        "version": 1,
        "weak": False,
        "metrics": {},
        "shared": {"accuracy": {"value": 0.5, "low": None}},
        "confusion": None,
    }
    made = {
        "task": "mood", "a": side, "b": {**side, "version": 2}, "better": True, "reason": EVIL, "rows_left_out": 3,
        "labels": [EVIL, "b"], "flipped": [{"label": EVIL, "a": "b", "b": EVIL, "count": 7}],
        "evidence": "cross-validated", "worth": EVIL, "relabeled": 2,
        "flipped_rows": [{"text": EVIL, "text_b": None, "label": EVIL, "label_before": "b", "a": "b", "b": EVIL}],
        "comparison": {
            "verdict": "better", "rows": 90, "newly_right": 8, "newly_wrong": 1, "p_value": 0.01, "loss": "log_loss",
            "increase": -0.1, "low": -0.2, "high": None,
        },
    }  # fmt: skip
    at_hand: list[bytes | None] = [None]
    monkeypatch.setattr(Shelf, "comparison_at_hand", lambda *_: at_hand[0])
    monkeypatch.setattr(Shelf, "comparison", lambda *_: json.dumps(made).encode())
    waiting = browser.get("/tasks/mood/compare?a=v1&b=v2").text  # comes before anything is compared
    assert 'hx-get="/tasks/mood/compare?a=v1&amp;b=v2&amp;now=true" hx-trigger="load"' in waiting
    page = without_quoted_scripts(browser.get("/tasks/mood/compare?a=v1&b=v2&now=true").text)
    at_hand[0] = json.dumps(made).encode()
    assert "90 rows" in browser.get("/tasks/mood/compare?a=v1&b=v2").text
    for text in (
        "2 rows with a changed label",
        "was b",
        "90 rows",
        "0.500",
        "-0.100",
        "onboard compare mood@v1 mood@v2",
        "8 rows right",
        "1 wrong that it got right. log_loss changes by -0.100 (too few rows for an interval); below zero is better.",
    ):
        assert text in page
    assert browser.get("/tasks/mood/compare.json?a=v1&b=v2").json() == made
    assert browser.get("/tasks/mood/compare?a=v1").status_code == 422


def test_a_task_that_is_not_there_is_a_page_that_says_so(browser: TestClient) -> None:
    answer = browser.get("/tasks/mood")
    assert (answer.status_code, 'role="alert"' in answer.text) == (404, True)


def test_who_may_only_read_promotes_nothing(reader: TestClient, database: Database) -> None:
    for _ in range(2):
        publish(database, "mood")
    page = reader.get("/tasks/mood").text
    assert re.findall(r'action="([^"]+)"', page) == ["/logout", "/tasks/mood/try", "/tasks/mood/compare"]
    for place in ("promote", "rollback"):
        assert reader.post(f"/tasks/mood/{place}", data={"alias": "x", "version": 1, "seen": 0}).status_code == 403


def test_what_users_wrote_is_text_on_the_pages_of_tasks(browser: TestClient, database: Database) -> None:
    publish(database, "mood", labels=(EVIL, "b"), words=(EVIL, "b"), parent=EVIL)
    without_quoted_scripts(browser.get("/tasks").text)
    without_quoted_scripts(browser.get("/tasks/mood").text)
    without_quoted_scripts(browser.get("/tasks", params={"name": EVIL, "label": EVIL}).text)
    browser.post("/tasks/mood/promote", data={"version": 1, "alias": "good", "because": EVIL})
    assert "&lt;script&gt;" in browser.get("/tasks/mood").text


def test_versions_with_another_metric_are_left_out_of_the_chart() -> None:
    def version(number: int, **metrics: float) -> dict[str, Any]:
        measured = {name: {"value": value, "low": None, "high": None, "n": 9} for name, value in metrics.items()}
        return {"version": number, "task_kind": "classification", "weak": False, "metrics": {"validation": measured}}

    chart = versions_chart([version(3), version(2, mcc=0.2), version(1, accuracy=0.5)])
    assert chart is not None
    assert [(track.label, track.low) for track in chart.tracks] == [("v2", None)]
    assert versions_chart([version(3)]) is None
    assert (measured_text(version(3)), measured_text(version(1, accuracy=0.5))) == (
        "",
        "accuracy 50% on 9 validation rows",
    )
