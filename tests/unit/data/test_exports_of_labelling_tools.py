"""Exports of Label Studio, Argilla, doccano and Prodigy: read as they are, and what has no label is told by row."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dataset_rows import balanced

from onboard.data.formats.tools import records_of
from onboard.data.texts import read_texts

ROWS = balanced(12)
LABELS = {row["text"]: row["label"] for row in ROWS}
Rows = list[dict[str, Any]]


def choice(labels: Sequence[str], question: str = "mood", **more: Any) -> dict[str, Any]:
    result = {"from_name": question, "to_name": "text", "type": "choices", "value": {"choices": list(labels)}}
    return {"id": 7, "completed_by": 1, "was_cancelled": False, "result": [result] if labels else [], **more}


def task(number: int, text: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    return {"id": 500 + number, "data": {"text": text}, "annotations": list(annotations), "predictions": []}


def label_studio() -> Rows:
    return [task(number, row["text"], choice([row["label"]])) for number, row in enumerate(ROWS)]


def json_min() -> Rows:
    facts = {"annotator": 1, "created_at": "2026-01-02", "updated_at": "2026-01-02", "lead_time": 3.5}
    return [
        {"id": number, "text": row["text"], "mood": row["label"], "annotation_id": 90 + number, **facts}
        for number, row in enumerate(ROWS)
    ]


def argilla() -> Rows:
    return [
        {
            "id": str(number), "fields": {"text": row["text"]}, "metadata": {}, "vectors": {}, "_server_id": "a",
            "suggestions": {"mood": {"value": "wrong", "score": 0.5, "agent": "model"}},
            "responses": {"mood": [{"value": row["label"], "user_id": "u1", "status": "submitted"}]},
        }
        for number, row in enumerate(ROWS)
    ]  # fmt: skip


def argilla_flat() -> Rows:
    return [
        {
            "id": str(number), "text": row["text"], "mood.suggestion": "wrong", "mood.responses": [row["label"]],
            "mood.responses.users": ["u1"], "mood.responses.status": ["submitted"],
        }
        for number, row in enumerate(ROWS)
    ]  # fmt: skip


def doccano() -> Rows:
    return [
        {"id": number, "text": row["text"], "label": [row["label"]], "Comments": []} for number, row in enumerate(ROWS)
    ]


def prodigy() -> Rows:
    options = [{"id": label, "text": label} for label in ("good", "bad")]
    return [
        {
            "text": row["text"], "options": options, "accept": [row["label"]], "answer": "accept", "_view_id": "choice",
            "_input_hash": number, "_task_hash": -number, "_annotator_id": "ann",
        }
        for number, row in enumerate(ROWS)
    ]  # fmt: skip


EXPORTS = {
    "Label Studio": label_studio, "Label Studio, minimal": json_min, "Argilla": argilla, "Argilla, flat": argilla_flat,
    "doccano": doccano, "Prodigy": prodigy,
}  # fmt: skip


@pytest.fixture
def write_json(tmp_path: Path) -> Callable[..., Path]:
    def write(rows: Rows, name: str = "export.json") -> Path:
        path = tmp_path / name
        path.write_text(json.dumps(rows), encoding="utf-8")
        return path

    return write


def write_csv(path: Path, rows: Rows) -> Path:
    columns = sorted({name for row in rows for name in row})
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, columns)
    writer.writeheader()
    writer.writerows(rows)
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize("make", EXPORTS.values(), ids=EXPORTS)
def test_an_export_is_read_as_it_is(make, write_json, write_jsonl, read) -> None:
    for path in (write_json(make()), write_jsonl(make())):
        checked = read(path)
        assert {row.text_a: row.label for row in checked.dataset.train} == LABELS
        assert checked.report.warnings == ()


def test_the_csv_of_label_studio_is_read_with_several_choices_told(tmp_path, read) -> None:
    rows = json_min()
    rows[3]["mood"] = json.dumps({"choices": ["good", "bad"]})
    rows[5]["mood"] = ""
    checked = read(write_csv(tmp_path / "export.csv", rows))
    assert len(checked.dataset.train) == 10
    assert {finding.code: finding.message for finding in checked.report.warnings} == {
        "several_labels": "1 row of the train split with several labels from one annotator: left out (row 4).",
        "unlabelled_rows": "1 row of the train split without a label: left out (row 6).",
    }


def by_name(rows: Rows) -> dict[str, Any]:
    """What `to_dict` of Argilla makes of records: a list per column."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def by_number(rows: Rows) -> dict[str, Any]:
    """What `to_dict(orient="index")` makes of them: a record per id."""
    return {row["id"]: row for row in rows}


@pytest.mark.parametrize("make", [argilla, argilla_flat])
@pytest.mark.parametrize("pack", [by_name, by_number])
def test_records_of_argilla_in_one_object_are_read(make, pack, tmp_path, read) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(pack(make())), encoding="utf-8")
    checked = read(path)
    assert {row.text_a: row.label for row in checked.dataset.train} == LABELS
    assert checked.report.warnings == ()
    assert [row.given["id"] for row in read_texts(path)] == [str(number) for number in range(len(ROWS))]


@pytest.mark.parametrize(
    "whole",
    [
        {},
        {"text": "one row", "label": "good"},
        {"text": ["a", "b"], "label": ["x", "y"]},
        {"id": ["1", "2"], "fields": [{"text": "a"}], "responses": [{}, {}]},
        {"id": ["1"], "fields": [{"text": "a"}], "responses": ["good"]},
        {"1": {"text": "a"}, "2": 7},
        argilla()[0],
        argilla_flat()[0],
    ],
)
def test_other_objects_are_not_unpacked(whole) -> None:
    assert records_of(whole) is None


def test_a_parquet_file_of_argilla_is_read(tmp_path, read) -> None:
    pq.write_table(pa.Table.from_pylist(argilla_flat()), tmp_path / "export.parquet")
    assert {row.text_a: row.label for row in read(tmp_path / "export.parquet").dataset.train} == LABELS


def left_out_of(finding: Any) -> tuple[str, int, bool]:
    return finding.code, finding.count, "left out" in finding.message


@pytest.mark.parametrize(
    ("make", "spoil"),
    [
        (label_studio, lambda row: row["annotations"][0].update(was_cancelled=True, result=[])),
        (argilla, lambda row: row["responses"]["mood"][0].update(status="discarded")),
        (argilla_flat, lambda row: row.update({"mood.responses.status": ["discarded"]})),
        (prodigy, lambda row: row.update(answer="reject")),
        (prodigy, lambda row: row.update(answer="ignore")),
    ],
)
def test_what_an_annotator_skipped_or_rejected_is_left_out(make, spoil, write_json, read) -> None:
    rows = make()
    spoil(rows[4])
    (finding,) = read(write_json(rows)).report.warnings
    assert left_out_of(finding) == ("rejected_rows", 1, True)
    assert "(row 5)" in finding.message


@pytest.mark.parametrize(
    ("make", "spoil"),
    [
        (label_studio, lambda row: row.update(annotations=[])),
        (label_studio, lambda row: row["annotations"][0].update(result=[])),
        (json_min, lambda row: row.pop("mood")),
        (argilla, lambda row: row.update(responses={})),
        (argilla, lambda row: row.update(responses=None)),
        (argilla, lambda row: row["responses"]["mood"][0].update(status="draft")),
        (argilla_flat, lambda row: row.update({"mood.responses": None, "mood.responses.status": None})),
        (doccano, lambda row: row.update(label=[])),
        (prodigy, lambda row: row.update(accept=[])),
    ],
)
def test_what_nobody_labelled_is_left_out(make, spoil, write_json, read) -> None:
    rows = make()
    spoil(rows[0])
    spoil(rows[11])
    (finding,) = read(write_json(rows)).report.warnings
    assert left_out_of(finding) == ("unlabelled_rows", 2, True)
    assert "(rows 1, 12)" in finding.message


@pytest.mark.parametrize(
    ("make", "spoil"),
    [
        (label_studio, lambda row: row.update(annotations=[choice(["good", "bad"])])),
        (json_min, lambda row: row.update(mood={"choices": ["good", "bad"]})),
        (argilla, lambda row: row["responses"]["mood"][0].update(value=["good", "bad"])),
        (doccano, lambda row: row.update(label=["bad", "good"])),
        (prodigy, lambda row: row.update(accept=["bad", "good"])),
    ],
)
def test_several_labels_of_one_annotator_are_no_label(make, spoil, write_json, read) -> None:
    rows = make()
    spoil(rows[2])
    (finding,) = read(write_json(rows)).report.warnings
    assert left_out_of(finding) == ("several_labels", 1, True)
    assert "(row 3)" in finding.message


def of_three(row: dict[str, Any], make: Callable[[], Rows], labels: Sequence[str]) -> Rows:
    """One row of an export as three annotators would have it."""
    if make is label_studio:
        return [{**row, "annotations": [choice([label]) for label in labels]}]
    if make is argilla:
        answers = [{"value": label, "user_id": str(user), "status": "submitted"} for user, label in enumerate(labels)]
        return [{**row, "responses": {"mood": answers}}]
    if make is argilla_flat:
        return [{**row, "mood.responses": list(labels), "mood.responses.status": ["submitted"] * len(labels)}]
    key = "mood" if make is json_min else "accept"
    return [{**row, key: label if make is json_min else [label]} for label in labels]


@pytest.mark.parametrize("make", [label_studio, json_min, argilla, argilla_flat, prodigy])
def test_annotators_who_disagree_are_told_by_row(make, write_json, read) -> None:
    rows = make()
    disputed = of_three(rows[9], make, ("good", "bad"))
    majority = of_three(rows[10], make, ("bad", "good", "bad"))
    agreed = of_three(rows[11], make, (LABELS[ROWS[11]["text"]],) * 2)
    checked = read(write_json([*rows[:9], *disputed, *majority, *agreed]))
    labels = {row.text_a: row.label for row in checked.dataset.train}
    assert len(labels) == 11
    assert ROWS[9]["text"] not in labels
    assert labels[ROWS[10]["text"]] == "bad"
    (finding,) = checked.report.warnings
    assert (finding.code, finding.count) == ("disagreeing_annotators", 2)
    second = 10 + len(disputed)
    assert f"1 have the label that more than half of them gave (row {second})" in finding.message
    assert "1 are left out (row 10)" in finding.message
    assert [example["row"] for example in finding.examples] == [10, second]
    assert finding.examples[1]["label"] == "bad"


def test_a_skipped_annotation_beside_a_label_takes_nothing_away(write_json, read) -> None:
    rows = label_studio()
    rows[0]["annotations"].append(choice([], was_cancelled=True))
    assert len(read(write_json(rows)).dataset.train) == 12


def test_ratings_of_label_studio_are_numbers(write_json, write_jsonl, read) -> None:
    def rated(number: int, row: dict[str, Any]) -> dict[str, Any]:
        result = {"from_name": "stars", "to_name": "text", "type": "rating", "value": {"rating": number % 3}}
        return task(number, row["text"], {"id": 1, "result": [result]})

    nested = read(write_json([rated(number, row) for number, row in enumerate(ROWS)]))
    minimal = [{**row, "mood": [{"rating": number % 3}]} for number, row in enumerate(json_min())]
    for checked in (nested, read(write_jsonl(minimal))):
        assert checked.dataset.labels == (0, 1, 2)


def test_of_several_questions_one_is_asked_for(write_json, read, problems_of) -> None:
    rows = label_studio()
    for row in rows:
        row["annotations"][0]["result"] += choice(["urgent"], "haste")["result"]
    (problem,) = problems_of(write_json(rows))
    assert problem["code"] == "label_field"
    assert "mood, haste" in problem["remedy"]
    assert len(read(write_json(rows), label_field="mood").dataset.train) == 12


def test_the_only_field_of_a_task_is_its_text(write_json, read) -> None:
    rows = label_studio()
    for row in rows:
        row["data"] = {"comment of a customer": row["data"]["text"]}
    assert read(write_json(rows)).report.fields.text == ("comment of a customer",)


def test_an_export_without_one_label_says_what_is_in_it(write_json, problems_of) -> None:
    rows = [task(number, row["text"]) for number, row in enumerate(ROWS)]
    rows[0]["annotations"] = [choice(["good"], was_cancelled=True)]
    (problem,) = problems_of(write_json(rows), label_field="mood")
    assert problem["code"] == "empty_file"
    assert "Label Studio" in problem["message"]
    assert "1 rejected rows, 11 unlabelled rows" in problem["message"]


@pytest.mark.parametrize("make", EXPORTS.values(), ids=EXPORTS)
def test_texts_of_an_export_are_read_without_labels(make, write_json) -> None:
    assert [row.texts["text"] for row in read_texts(write_json(make()))] == [row["text"] for row in ROWS]


def test_spans_of_doccano_are_no_labels(write_json, problems_of) -> None:
    rows = [{**row, "label": [[0, 4, "LOC"]]} for row in doccano()]
    assert problems_of(write_json(rows))[0]["code"] == "label_type"


def test_columns_of_somebody_else_are_no_export(write_json, read) -> None:
    rows = [{"id": i, "text": row["text"], "label": row["label"], "data": 1} for i, row in enumerate(ROWS)]
    assert len(read(write_json(rows)).dataset.train) == 12


def test_the_ground_truth_of_label_studio_decides(write_json, read) -> None:
    others = [choice(["bad"]), choice(["bad"])]
    rows = [task(number, row["text"], *others, choice([row["label"]], ground_truth=True))
            for number, row in enumerate(ROWS)]  # fmt: skip
    checked = read(write_json(rows))
    assert {row.text_a: row.label for row in checked.dataset.train} == LABELS
    assert checked.report.warnings == ()


def test_a_ground_truth_that_says_nothing_of_the_question_leaves_it_to_the_others(write_json, read) -> None:
    rows = [task(number, row["text"], choice([row["label"]]), choice(["x"], "other", ground_truth=True))
            for number, row in enumerate(ROWS)]  # fmt: skip
    checked = read(write_json(rows), label_field="mood")
    assert {row.text_a: row.label for row in checked.dataset.train} == LABELS


def argilla_1(number: int, status: str = "Validated") -> dict[str, Any]:
    row = ROWS[number]
    return {"text": row["text"], "prediction": None, "annotation": row["label"], "status": status, "id": str(number)}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_records_of_argilla_1_that_were_discarded_are_left_out(kind: str, tmp_path, write_jsonl, read) -> None:
    rows = [argilla_1(number, "Discarded" if number == 5 else "Validated") for number in range(12)]
    path = tmp_path / f"export.{kind}"
    if kind == "jsonl":
        path = write_jsonl(rows)
    elif kind == "csv":
        write_csv(path, rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    checked = read(path)
    assert [left_out_of(finding) for finding in checked.report.warnings] == [("rejected_rows", 1, True)]
    assert {row.text_a: row.label for row in checked.dataset.train} == {
        text: label for text, label in LABELS.items() if text != ROWS[5]["text"]
    }


@pytest.mark.parametrize("number", ["id", "doc_id"])
@pytest.mark.parametrize("text", ["text", "data"])
def test_doccano_calls_the_text_data_and_the_number_doc_id(number: str, text: str, write_jsonl, read) -> None:
    rows = [{number: place, text: row["text"], "label": [row["label"]]} for place, row in enumerate(ROWS)]
    assert {row.text_a: row.label for row in read(write_jsonl(rows)).dataset.train} == LABELS


def test_rows_of_prodigy_without_hashes_are_known_by_their_options(write_jsonl, read) -> None:
    rows = [{name: value for name, value in row.items() if not name.startswith("_")} for row in prodigy()]
    rows[2]["answer"] = "reject"
    checked = read(write_jsonl(rows))
    assert [left_out_of(finding) for finding in checked.report.warnings] == [("rejected_rows", 1, True)]
    assert len(checked.dataset.train) == 11
