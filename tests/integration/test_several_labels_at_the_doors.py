"""A task with several labels per text as people meet it: HTTP, client, pages and command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
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
from onboard.data.snapshot import load
from onboard.domain.access import ALL_SCOPES
from onboard.domain.addition import Addition
from onboard.domain.dataset import Dataset
from onboard.domain.label_change import LabelChange
from onboard.errors import DatasetError
from onboard.jobs.add import Added, add
from onboard.jobs.labels import Relabeled, change_labels, list_labels
from onboard.operations.access import create_token
from onboard.serving import Predictor
from onboard.testing import MemoryDoorbell
from onboard.versions.promote import promote
from onboard.versions.readouts import readout_of
from onboard.versions.trained_rows import read_snapshot

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
    refused = command_line("export", "tags", "--format", "adapters", "--output", tmp_path / "adapters", "--json")
    assert (refused.code, refused.error["type"]) == (4, "version-without-embedding")
    missing = command_line("submit", "--task", "more", "--labels", "a,b", "--kind", "multilabel", "--json")
    assert (missing.code, missing.error["type"]) == (2, "option-needs-rows")


def adding(desk: Desk, rows: list[dict[str, Any]], **options: Any) -> Added:
    path = write_rows(desk.folder / "more.jsonl", rows)
    return add(desk.services, MemoryDoorbell(), "tags", Addition(dataset=str(path), **options))


def rows_of(desk: Desk, reference: str) -> Dataset:
    return load(read_snapshot(desk.services, desk.version(reference).dataset_digest))


def changed(desk: Desk, *change: Any) -> Relabeled:
    return change_labels(desk.services, MemoryDoorbell(), "tags", LabelChange(*change))


def test_rows_are_added_corrected_and_removed(learned: Desk) -> None:
    known, new = sets_of(3), sets_of(5, 2000)
    odd = {**known[0], "labels": ["great", "plot"]}
    added = adding(learned, [odd, known[1], *new])
    assert added.change.counts == {"added": 5, "repeated": 1, "contradicted": 1}
    learned.run(learned.claim())
    assert len(rows_of(learned, "tags@v3").train) == 95
    assert learned.version("tags").version == 3
    corrected = adding(learned, [odd], replace=True)
    assert corrected.change.counts == {"replaced": 1}
    removed = adding(learned, [{"text": known[1]["text"]}], remove=True)
    assert removed.change.counts == {"removed": 1}
    for _ in range(2):
        learned.run(learned.claim())
    after = {row.text_a: row.label for row in rows_of(learned, "tags@v5").train}
    assert (after[odd["text"]], known[1]["text"] in after) == ('["great", "plot"]', False)


def test_new_labels_in_sets_come_only_where_they_are_welcome(learned: Desk) -> None:
    rows = [{"text": f"an actor and a plot, number {place}", "labels": ["plot", "actor"]} for place in range(4)]
    with refused("unknown-label", row=1):
        adding(learned, rows)
    adding(learned, rows, new_labels=True)
    learned.run(learned.claim())
    assert rows_of(learned, "tags@v3").labels == ("actor", "film", "great", "plot")
    assert {row.label for row in rows_of(learned, "tags@v3").train if "actor" in row.text_a} == {'["actor", "plot"]'}


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["film", " "], "missing_label"),
        (["film", None], "missing_label"),
        ([["film"]], "label_type"),
        (None, "missing_label"),
    ],
)
def test_unusable_sets_are_not_added(learned: Desk, labels: Any, problem: str) -> None:
    with pytest.raises(DatasetError) as caught:
        adding(learned, [*sets_of(3, 2000), {"text": "a new text", "labels": labels}])
    assert [(one["code"], one["row"]) for one in caught.value.data["problems"]] == [(problem, 4)]
    added = adding(learned, [{"text": "a newer text", "labels": ["great", "film", "great"]}])
    warnings = {one["code"] for one in added.job.spec.options["dataset_report"]["warnings"]}
    assert (added.change.counts, "repeated_labels" in warnings) == ({"added": 1}, True)


def test_rows_that_would_leave_nothing_to_learn_stay(learned: Desk) -> None:
    texts = [{"text": row["text"]} for row in sets_of(90)]
    with refused("label-without-rows-left"):
        adding(learned, [text for text in texts if "film" in text["text"]], remove=True)
    both = sets_of(90)[4:5]  # two labels
    both += [row for row in sets_of(90) if row["labels"] == ["plot", "great"]]
    learned.learn([*both, {"text": "plot alone", "labels": ["film", "plot", "great"]}], "few", test=sets_of(10, 500))
    path = write_rows(learned.folder / "more.jsonl", [{"text": row["text"]} for row in both])
    with refused("sets-left-alike"):
        add(learned.services, MemoryDoorbell(), "few", Addition(dataset=str(path), remove=True))


def test_a_file_with_all_rows_and_more_adds_them(learned: Desk) -> None:
    learned.submit(sets_of(95), "tags", test=sets_of(30, 500))
    change = learned.jobs()[0].spec.change
    assert change is not None
    assert (change["action"], change["counts"]) == ("add", {"added": 5})


def test_labels_of_sets_are_renamed_merged_and_deleted(learned: Desk) -> None:
    asked = [{"task": "tags", "text": row["text"]} for row in sets_of(7, 300)]
    before = Predictor(learned.services).predict(asked)
    assert changed(learned, "rename", ("film",), "movie").version is not None
    names = {"film": "movie"}
    for old, new in zip(
        before, Predictor(learned.services).predict([{**row, "ref": "v3"} for row in asked]), strict=True
    ):
        assert old.chosen is not None
        assert new.chosen == tuple(names.get(str(label), label) for label in old.chosen)
        assert new.probabilities == old.probabilities
    promote(learned.services, "tags@v3", "latest", as_before=True)
    assert [one.chosen for one in Predictor(learned.services).predict(asked)] == [one.chosen for one in before]
    changed(learned, "merge", ("movie", "great"), "movie")
    learned.run(learned.claim())
    merged = rows_of(learned, "tags@v4")
    assert merged.labels == ("movie", "plot")
    assert {row.label for row in merged.train} == {"[]", '["movie"]', '["plot"]', '["movie", "plot"]'}
    as_if = [
        {**row, "labels": sorted({{"film": "movie", "great": "movie"}.get(one, one) for one in row["labels"]})}
        for row in sets_of(90)
    ]
    tests = [
        {**row, "labels": sorted({{"film": "movie", "great": "movie"}.get(one, one) for one in row["labels"]})}
        for row in sets_of(30, 500)
    ]
    learned.learn(as_if, "other", test=tests)
    ours, theirs = (readout_of(learned.services, learned.version(name), None) for name in ("tags@v4", "other@v1"))
    assert ours is not None
    assert theirs is not None
    np.testing.assert_allclose(ours.bias, theirs.bias, rtol=1e-3, atol=1e-3)
    with refused("labels-left-too-few"):
        changed(learned, "delete", ("plot",))
    listed = list_labels(learned.services, "tags")["labels"]
    assert {line["label"] for line in listed} == {"movie", "plot"}


def test_a_deleted_label_leaves_the_rows_with_their_other_labels(learned: Desk) -> None:
    changed(learned, "delete", ("great",))
    learned.run(learned.claim())
    after = rows_of(learned, "tags@v3")
    assert (after.labels, len(after.train)) == (("film", "plot"), 90)
    assert {row.label for row in after.train} == {"[]", '["film"]', '["plot"]', '["film", "plot"]'}
