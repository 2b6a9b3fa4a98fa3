"""Two versions of few rows are compared by cross-validated answers; any two on a file of labeled rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from support.callers import bearer
from support.opposed import opposed
from support.real_jobs import Desk, opinions, write_rows
from support.refusals import refused

from onboard.api.app import create_app
from onboard.bases import Base
from onboard.data.hashes import row_hashes
from onboard.data.labelled import read_labelled
from onboard.domain.dataset import Example
from onboard.domain.evaluation import Evaluation
from onboard.hypernetworks import engines
from onboard.registry.aliases import AliasRepository
from onboard.storage.out_of_fold import pack_out_of_fold, unpack_out_of_fold
from onboard.versions import compare as comparing
from onboard.versions.compare import both_versions, compare, compare_versions
from onboard.versions.measure import evaluate, takes_of
from onboard.versions.promote import promote
from onboard.versions.trained_rows import dataset_of


@pytest.fixture
def few(desk: Desk) -> Desk:
    """mood@v1 of 40 rows; mood@v2 of the same, four of them relabeled, and six more."""
    rows = opinions(40)
    desk.learn(rows, init="random")
    other = {"yes": "no", "no": "yes"}
    relabeled = [{**row, "label": other[row["label"]]} if place < 4 else row for place, row in enumerate(rows)]
    desk.learn([*relabeled, *opinions(6, start=900)], init="random")
    return desk


def let_out_of_fold_answers_be(desk: Desk, version: int, share_right: float) -> None:
    """Let a version's cross-validated answers be right on that share of its rows."""
    present = desk.version(f"mood@v{version}")
    dataset = dataset_of(desk.services, present)
    labels = list(present.labels)
    right = int(share_right * len(dataset.train))
    answers = np.full((len(dataset.train), len(labels)), 0.1)
    for place, row in enumerate(dataset.train):
        label = labels.index(row.label)
        answers[place, label if place < right else 1 - label] = 0.9
    packed = pack_out_of_fold(row_hashes(dataset.train), answers)
    with desk.services.database.write() as session:
        session.execute(
            text("UPDATE embedding_versions SET out_of_fold = :packed WHERE version = :version"),
            {"packed": packed, "version": version},
        )


def test_shared_rows_are_compared_by_answers_of_models_without_them(few: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "engine_at", lambda *_: pytest.fail("A model is loaded."))
    comparison = compare(few.services, "mood@v1", "mood@v2").to_document().to_json()
    assert comparison["evidence"] == "cross-validated"
    assert comparison["comparison"]["rows"] == 36  # those that kept their label
    assert comparison["relabeled"] == 4
    assert "models that were trained without it" in comparison["worth"]
    counted = sum(flip["count"] for flip in comparison["flipped"])
    listed = [row for row in comparison["flipped_rows"] if row["label_before"] is None]
    assert counted == len(listed)
    assert all(row["a"] != row["b"] and row["text"] for row in comparison["flipped_rows"])
    changed = comparison["comparison"]["newly_right"] + comparison["comparison"]["newly_wrong"]
    assert changed == counted  # two labels: every flip makes one right or wrong


def test_rows_whose_label_changed_are_listed_with_both_labels(few: Desk) -> None:
    let_out_of_fold_answers_be(few, 1, 1.0)
    let_out_of_fold_answers_be(few, 2, 1.0)
    comparison = compare(few.services, "mood@v1", "mood@v2").to_document().to_json()
    assert [row["label_before"] == row["a"] != row["label"] == row["b"] for row in comparison["flipped_rows"]] == [
        True
    ] * 4
    assert comparison["flipped"] == []
    assert comparison["comparison"]["verdict"] == "no significant difference"


def test_what_is_better_by_cross_validated_answers_is_promoted_and_the_history_says_so(few: Desk) -> None:
    let_out_of_fold_answers_be(few, 1, 0.5)
    let_out_of_fold_answers_be(few, 2, 1.0)
    assert compare(few.services, "mood@v1", "mood@v2").better
    promote(few.services, "mood@v1", "production")
    promote(few.services, "mood@v2", "production", if_better=True)
    with few.services.database.read() as session:
        newest, *_ = AliasRepository(session).history("mood", "production")
    assert newest.reason == "promoted: better by cross-validated answers"
    with refused("not-better-than-present") as caught:
        promote(few.services, "mood@v1", "production", if_better=True)
    assert "--test FILE" in caught.value.remedy
    assert promote(few.services, "mood@v1", "latest").version == 1  # only unseen rows forbid that


def test_without_any_evidence_the_changed_answers_are_listed(few: Desk) -> None:
    with few.services.database.write() as session:
        session.execute(text("UPDATE embedding_versions SET out_of_fold = NULL"))
    comparison = compare(few.services, "mood@v1", "mood@v2").to_document().to_json()
    assert (comparison["comparison"], comparison["evidence"], comparison["better"]) == (None, "training", False)
    assert "no cross-validated answers of v1 and v2" in comparison["reason"]
    assert "40 shared rows changed" in comparison["worth"]
    promote(few.services, "mood@v1", "production")
    with refused("not-better-than-present"):
        promote(few.services, "mood@v2", "production", if_better=True)


def test_a_version_is_asked_for_rows_that_it_has_neither_seen_nor_answered(desk: Desk) -> None:
    rows = opinions(80)
    desk.learn(rows[:40], init="random")
    desk.learn(rows[36:76], init="random")  # shares four rows with the first
    comparison = compare(desk.services, "mood@v1", "mood@v2").to_document().to_json()
    assert comparison["evidence"] == "cross-validated"
    assert comparison["comparison"]["rows"] == 76  # each answers what only the other was trained on


def test_two_versions_are_compared_on_the_rows_of_a_file(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    good, bad, rows = opposed(tiny_base)
    for z in (good, bad):
        trained_as(z)
        desk.learn(opinions(30), init="random")
    path = write_rows(desk.folder / "mine.jsonl", [*rows, *opinions(30)[:5]])
    a, b = both_versions(desk.services, "mood@v1", "mood@v2")
    comparison = compare_versions(desk.services, a, b, file=read_labelled(Evaluation(path), takes_of(b)))
    assert comparison.worse
    document = comparison.to_document().to_json()
    assert (document["evidence"], document["comparison"]["rows"], document["worth"]) == ("file", 40, None)
    assert "mine.jsonl that neither was trained on" in document["reason"]
    assert len(document["flipped_rows"]) == sum(flip["count"] for flip in document["flipped"]) >= 18
    only_trained = write_rows(desk.folder / "trained.jsonl", opinions(30))
    known = compare_versions(desk.services, a, b, file=read_labelled(Evaluation(only_trained), takes_of(b)))
    assert (known.measured, "trained on every row" in known.reason) == (None, True)


def test_a_version_is_measured_on_a_file(desk: Desk, tiny_base: Base, trained_as: Any) -> None:
    good, _, rows = opposed(tiny_base)
    trained_as(good)
    desk.learn(opinions(30), init="random")
    path = write_rows(desk.folder / "mine.jsonl", [*rows, *opinions(30)[:5]])
    document = evaluate(desk.services, "mood", Evaluation(path)).to_document().to_json()
    assert document["metrics"]["accuracy"]["value"] == 1.0
    assert (document["rows"], document["rows_trained_on"], document["mistakes"]) == (40, 5, [])
    assert "5 rows that it was trained on were skipped" in document["reason"]
    wrong = [{**row, "label": "yes" if row["label"] == "no" else "no"} for row in rows[:10]]
    write_rows(path, [*wrong, *rows[10:]])
    document = evaluate(desk.services, "mood", Evaluation(path)).to_document().to_json()
    assert document["metrics"]["accuracy"]["value"] == 0.75
    assert len(document["mistakes"]) == 10
    assert all(row["label"] != row["answer"] and row["probability"] > 0.5 for row in document["mistakes"])
    assert sum(map(sum, document["confusion"])) == 40


def test_a_file_that_does_not_fit_the_task_is_refused_row_by_row(few: Desk) -> None:
    takes = takes_of(few.version("mood@v1"))
    path = write_rows(
        few.folder / "mine.jsonl", [{"text": "Fine.", "label": "yes"}, {"text": "Odd.", "label": "maybe"}]
    )
    with refused("unknown-label") as caught:
        read_labelled(Evaluation(path), takes)
    assert "--unknown-labels drop" in str(caught.value.data["problems"])
    dropped = read_labelled(Evaluation(path, unknown_labels="drop"), takes)
    assert [row.text_a for row in dropped.rows] == ["Fine."]
    write_rows(path, [{"text_a": "One.", "text_b": "Two.", "label": "yes"}])
    with refused("text-field"):
        read_labelled(Evaluation(path), takes)
    write_rows(path, [{"message": "Fine.", "verdict": "yes"}])
    named = read_labelled(Evaluation(path, text_field="message", label_field="verdict"), takes)
    assert named.rows == (Example("Fine.", None, "yes"),)


def test_labels_of_a_csv_stand_for_typed_ones(desk: Desk) -> None:
    rows = [{**row, "label": int(row["label"] == "yes")} for row in opinions(30)]
    desk.learn(rows, init="random")
    path = desk.folder / "mine.csv"
    path.write_text("text,label\nLovely place.,1\nAwful place.,0\n", encoding="utf-8")
    read = read_labelled(Evaluation(path), takes_of(desk.version("mood@v1")))
    assert [row.label for row in read.rows] == [1, 0]


def test_cross_validated_answers_are_packed_and_read_again() -> None:
    packed = pack_out_of_fold([7, -3], np.array([[0.25, 0.75], [0.5, 0.5]]))
    assert packed is not None
    assert unpack_out_of_fold(packed, 2)[-3].tolist() == [0.5, 0.5]
    with refused("stored-answers-damaged"):
        unpack_out_of_fold(packed, 3)
    assert pack_out_of_fold(list(range(64)), np.zeros((64, 5000))) is None


@pytest.fixture
def caller(few: Desk) -> Iterator[TestClient]:
    headers = bearer(few.services.database, "read", "submit")
    with TestClient(create_app(few.services.settings), "http://localhost", headers=headers) as client:
        yield client


def upload(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"dataset": ("mine.jsonl", write_rows(folder / "sent.jsonl", rows).read_bytes())}


def test_a_server_answers_some_of_many_rows_and_says_so_and_the_command_here_all(
    caller: TestClient, few: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing, "MOST_ROWS", 12)
    files = upload(few.folder, opinions(20, start=500))
    measured = caller.post("/v1/tasks/mood/evaluate", files=files).raise_for_status().json()
    assert (measured["rows"], measured["rows_left_out"]) == (12, 8)
    assert "on 12 rows, drawn from 20." in measured["reason"]
    assert "`onboard evaluate` next to the database evaluates all." in measured["reason"]
    here = evaluate(few.services, "mood", Evaluation(few.folder / "sent.jsonl")).to_document().to_json()
    assert (here["rows"], here["rows_left_out"]) == (20, 0)


def test_over_http_a_file_is_uploaded(caller: TestClient, few: Desk) -> None:
    files = upload(few.folder, opinions(20, start=500))
    measured = caller.post("/v1/tasks/mood/evaluate", files=files).raise_for_status().json()
    assert (measured["rows"], measured["version"]) == (20, caller.get("/v1/tasks/mood").json()["version"])
    assert "mine.jsonl" not in json.dumps(measured["warnings"])
    compared = caller.post("/v1/tasks/mood/compare?a=v1&b=v2", files=files).raise_for_status().json()
    assert (compared["evidence"], compared["comparison"]["rows"]) == ("file", 20)
    assert "rows of mine.jsonl" in compared["reason"]
    hub = caller.post("/v1/tasks/mood/evaluate", files={"dataset": (None, "hf://glue")})
    assert (hub.status_code, hub.json()["field"]) == (422, "dataset")
    wrong = caller.post("/v1/tasks/mood/evaluate", files=upload(few.folder, [{"text": "Odd.", "label": "maybe"}]))
    assert (wrong.status_code, "maybe" in wrong.json()["detail"]) == (422, True)


def test_on_the_pages_a_file_is_uploaded(caller: TestClient, few: Desk) -> None:
    page = {"accept": "text/html"}
    first = caller.get("/tasks/mood/compare?a=v1&b=v2", headers=page).text
    assert 'hx-trigger="load"' in first
    made = caller.get("/tasks/mood/compare?a=v1&b=v2&now=true", headers=page).text
    for part in ("cross-validated", "4 rows with a changed label", 'action="/tasks/mood/compare?a=v1&amp;b=v2"'):
        assert part in made
    assert 'hx-trigger="load"' not in caller.get("/tasks/mood/compare?a=v1&b=v2", headers=page).text  # at hand now
    files = upload(few.folder, opinions(20, start=500))
    assert "20 rows of mine.jsonl" in caller.post("/tasks/mood/compare?a=v1&b=v2", files=files, headers=page).text
    assert 'name="dataset"' in caller.get("/tasks/mood/evaluate", headers=page).text
    measured = caller.post("/tasks/mood/evaluate?ref=v1", files=files, headers=page).text
    assert "mood@v1 has accuracy" in measured
