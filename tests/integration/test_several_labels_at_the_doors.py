"""A task with several labels per text as people meet it: HTTP, client, pages and command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from support.browsing import signed_in
from support.callers import bearer
from support.command_line import CommandLine
from support.real_door import answering
from support.real_jobs import Desk, write_rows
from support.refusals import refused

from onboard.api.app import create_app
from onboard.client import Onboard
from onboard.domain.access import ALL_SCOPES
from onboard.domain.addition import Addition
from onboard.domain.label_change import LabelChange
from onboard.jobs.add import add
from onboard.jobs.labels import change_labels, list_labels
from onboard.jobs.waking import doorbell
from onboard.operations.access import create_token

WORDS = {"film": "the film", "plot": "a plot", "great": "was great"}
SETS = [[], ["film"], ["plot"], ["great"], ["film", "great"], ["plot", "great"], ["film", "plot"]]
TEXTS = ["the film was great", "nothing"]


def sets_of(count: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows whose words say their labels."""
    numbered = ((place, SETS[place % len(SETS)]) for place in range(start, start + count))
    return [
        {"text": f"{' and '.join(WORDS[label] for label in labels) or 'nothing'}, number {place}", "labels": labels}
        for place, labels in numbered
    ]


@pytest.fixture
def learned(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Two versions of a task."""
    for rows in (21, 90):
        desk.learn(sets_of(rows), "tags", test=sets_of(30, 500))
    for module in ("onboard.api.routes.jobs", "onboard.api.pages.submit", "onboard.jobs.waking"):
        monkeypatch.setattr(f"{module}.start_worker", lambda *_: False)
    return desk


def test_over_http_and_in_the_client_sets_come_as_lists(learned: Desk, tmp_path: Path) -> None:
    services = learned.services
    app = create_app(services.settings)
    secret = create_token(services.database, "tester", list(ALL_SCOPES))[1]
    fresh = write_rows(tmp_path / "fresh.jsonl", sets_of(20, 900))
    with answering(app) as port, Onboard(f"http://127.0.0.1:{port}", secret, cache=tmp_path / "cache") as client:
        answers = client.predict([{"task": "tags", "text": text} for text in TEXTS], probabilities=True)
        for answer in answers:
            assert answer.chosen is not None
            assert json.loads(str(answer.label)) == list(answer.chosen)
            assert len(answer.probabilities) == 3
        compared = client.compare("tags@v1", "tags@v2")
        assert set(compared.later.shared or {}) == {"micro_f1", "macro_f1", "lrap", "exact_match"}
        measured = client.evaluate("tags", fresh)
        assert (measured.rows, measured.confusion) == (20, None)
        assert client.check(fresh, "tags").kind == "multilabel"
        (task,) = client.tasks(metric="micro_f1")
        assert task.kind == "multilabel"


def test_the_api_describes_what_it_answers(learned: Desk) -> None:
    headers = bearer(learned.services.database, *ALL_SCOPES, name="tester")
    with TestClient(create_app(learned.services.settings), "http://localhost", headers=headers) as door:
        body = {"inputs": [{"task": "tags", "text": text} for text in TEXTS], "unknown": True}
        answers = door.post("/v1/predict", json=body).json()["predictions"]
        for answer in answers:
            assert set(answer) == {"label", "labels", "probability", "task", "version", "unknown", "weak"}
            assert isinstance(answer["labels"], list)
        schemas = door.get("/openapi.json").json()["components"]["schemas"]
        assert "labels" in schemas["PredictionDocument"]["properties"]


def test_the_pages_show_it(learned: Desk) -> None:
    services = learned.services
    job = learned.jobs()[0].id
    with signed_in(create_app(services.settings), services.database, *ALL_SCOPES) as browser:
        paths = ["/", "/tasks", "/tasks/tags", f"/jobs/{job}", "/tasks/tags/compare?a=v1&b=v2&now=true"]
        pages = {path: browser.get(path) for path in paths}
        assert {path: page.status_code for path, page in pages.items()} == dict.fromkeys(paths, 200)
        assert "micro-F1" in pages[f"/jobs/{job}"].text
        tried = browser.post("/tasks/tags/try", data={"text": TEXTS[0]}, headers={"Origin": "http://localhost"})
        assert tried.status_code == 200
        assert "labels with 50% or more are answered" in tried.text
        measured = browser.post(
            "/tasks/tags/evaluate", files={"dataset": ("fresh.jsonl", "\n".join(map(json.dumps, sets_of(20, 900))))},
            headers={"Origin": "http://localhost"},
        )  # fmt: skip
        assert measured.status_code == 200
        assert "exactly right" in measured.text


def test_commands_take_it(learned: Desk, command_line: CommandLine, tmp_path: Path) -> None:
    command_line.at_home(learned.services.settings)
    command_line.monkeypatch.setenv("ONBOARD_START_WORKER", "false")
    shown = command_line("predict", "tags", "--text", TEXTS[0], "--probabilities")
    assert shown.code == 0, shown.err
    (answer,) = command_line("predict", "tags", "--text", TEXTS[0], "--json").document["predictions"]
    assert isinstance(answer["labels"], list)
    source = write_rows(tmp_path / "new.jsonl", [{"text": text, "labels": "mine"} for text in TEXTS])
    for output in ("answers.csv", "answers.jsonl", "folder/"):
        said = command_line("predict", "tags", "--input", source, "--output", f"{tmp_path}/{output}")
        assert said.code == 0, said.err
    lines = [json.loads(line) for line in (tmp_path / "folder" / "part-000000.jsonl").read_text().splitlines()]
    assert [line["given_labels"] for line in lines] == ["mine", "mine"]
    assert isinstance(lines[0]["labels"], list)
    fresh = write_rows(tmp_path / "fresh.jsonl", sets_of(20, 900))
    job = learned.jobs()[0].id
    commands = [
        ("tasks", "list"), ("tasks", "show", "tags"), ("versions", "tags"), ("compare", "tags@v1", "tags@v2"),
        ("evaluate", "tags", fresh), ("check", fresh), ("jobs", "show", job),
        ("fetch", "tags", "--output", tmp_path / "fetched"), ("prior", "list"),
    ]  # fmt: skip
    for words in commands:
        said = command_line(*words)
        assert said.code == 0, (words, said.err)
    assert "micro_f1" in command_line("tasks", "list").out
    refused = command_line("export", "tags", "--format", "adapters", "--output", tmp_path / "adapters")
    assert refused.code == 4
    assert "has no embedding to export" in refused.err
    missing = command_line("submit", "--task", "more", "--labels", "a,b", "--kind", "multilabel")
    assert (missing.code, "no meaning without labeled rows" in missing.err) == (2, True)


def test_their_rows_and_labels_are_submitted_as_a_whole(learned: Desk, tmp_path: Path) -> None:
    more = write_rows(tmp_path / "more.jsonl", sets_of(5, 2000))
    with refused("task-with-sets", task="tags"):
        add(learned.services, doorbell(learned.services), "tags", Addition(dataset=str(more)))
    with refused("task-with-sets", task="tags"):
        change_labels(learned.services, doorbell(learned.services), "tags", LabelChange("rename", ("film",), "movie"))
    listed = list_labels(learned.services, "tags")["labels"]
    assert {line["label"] for line in listed} == {"film", "great", "plot"}
    assert all(line["rows"] > 0 for line in listed)
