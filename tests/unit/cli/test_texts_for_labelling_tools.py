"""Texts to label next, as Label Studio and Argilla import them; what they export once labelled is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused

from cli.label_tools import answered_row
from cli.prediction_files import write_label_next, write_suggestions
from onboard.data.read import ReadOptions, read_dataset
from onboard.errors import DatasetError, InputError

ROWS = [
    {"text": f"sentence number {i}", "uncertainty": 0.9, "answers": [
        {"label": "good", "probability": 0.52}, {"label": "bad", "probability": 0.48}]}
    for i in range(12)
]  # fmt: skip
JOB: dict[str, Any] = {"job": "0123456789ab", "task": "mood", "version": 3, "label_next": {"rows": ROWS}}


def labelled_in_label_studio(task: dict[str, Any], number: int) -> dict[str, Any]:
    result = {"from_name": "mood", "to_name": "text", "type": "choices", "value": {"choices": [label(number)]}}
    return {"id": number, **task, "annotations": [{"id": number, "completed_by": 1, "result": [result]}]}


def labelled_in_argilla(record: dict[str, Any], number: int) -> dict[str, Any]:
    response = {"value": label(number), "user_id": "u", "status": "submitted"}
    return {**record, "responses": {"mood": [response]}, "_server_id": "s"}


def label(number: int) -> str:
    return ("good", "bad")[number % 2]


@pytest.mark.parametrize(
    ("tool", "labelled"), [("label-studio", labelled_in_label_studio), ("argilla", labelled_in_argilla)]
)
def test_what_is_written_for_a_tool_comes_back_labelled(tool, labelled, tmp_path: Path) -> None:
    path = tmp_path / "next.json"
    write_label_next(JOB, path, tool)
    exported = [labelled(row, number) for number, row in enumerate(json.loads(path.read_text(encoding="utf-8")))]
    path.write_text(json.dumps(exported), encoding="utf-8")
    checked = read_dataset(path)
    assert {row.text_a: row.label for row in checked.dataset.train} == {
        row["text"]: label(number) for number, row in enumerate(ROWS)
    }
    assert checked.report.warnings == ()


def test_label_studio_shows_what_the_version_would_answer(tmp_path: Path) -> None:
    write_label_next(JOB, tmp_path / "next.json", "label-studio")
    (task, *_) = json.loads((tmp_path / "next.json").read_text(encoding="utf-8"))
    assert task["data"] == {"text": "sentence number 0", "onboard": "good 0.52, bad 0.48"}
    choice = {"from_name": "label", "to_name": "text", "type": "choices", "value": {"choices": ["good"]}}
    assert task["predictions"] == [{"model_version": "onboard mood@v3", "score": 0.52, "result": [choice]}]
    scale = [{"text_a": "a", "text_b": "b", "uncertainty": 0.9, "value": 3.4, "spread": 0.8}]
    write_label_next({**JOB, "label_next": {"rows": scale}}, tmp_path / "scale.json", "label-studio")
    assert json.loads((tmp_path / "scale.json").read_text(encoding="utf-8")) == [
        {
            "data": {"text_a": "a", "text_b": "b", "onboard": "3.4 ± 0.8"},
            "predictions": [
                {
                    "model_version": "onboard mood@v3",
                    "result": [{"from_name": "label", "to_name": "text_a", "type": "number", "value": {"number": 3.4}}],
                }
            ],
        }
    ]


def test_records_of_argilla_have_an_id_of_their_own(tmp_path: Path) -> None:
    write_label_next(JOB, tmp_path / "next.json", "argilla")
    records = json.loads((tmp_path / "next.json").read_text(encoding="utf-8"))
    assert len({record["id"] for record in records}) == 12
    assert records[0]["fields"] == {"text": "sentence number 0"}
    assert records[0]["suggestions"] == {"label": {"value": "good", "score": 0.52, "agent": "onboard mood@v3"}}


def test_examples_of_doccano_come_with_the_answer_as_their_label(tmp_path: Path) -> None:
    write_label_next(JOB, tmp_path / "next.jsonl", "doccano")
    lines = (tmp_path / "next.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [{"text": row["text"], "label": ["good"]} for row in ROWS]
    pairs = [{"text_a": "a", "text_b": "b", "answers": []}]
    with refused("label-tool-unfit"):
        write_label_next({**JOB, "label_next": {"rows": pairs}}, tmp_path / "pairs.jsonl", "doccano")


@pytest.mark.parametrize("tool", ["label-studio", "argilla", "doccano"])
def test_labels_of_any_type_are_suggested_by_their_names(tool: str, tmp_path: Path) -> None:
    rows = [{"text": "a", "answers": [{"label": True, "probability": 0.6}, {"label": False, "probability": 0.4}]}]
    write_label_next({**JOB, "label_next": {"rows": rows}}, tmp_path / "next.json", tool)
    assert '"true"' in (tmp_path / "next.json").read_text(encoding="utf-8")


def test_a_suggestion_is_not_read_as_a_label(tmp_path: Path) -> None:
    for tool in ("label-studio", "argilla"):
        write_label_next(JOB, tmp_path / f"{tool}.json", tool)
        with pytest.raises(DatasetError):
            read_dataset(tmp_path / f"{tool}.json", ReadOptions(text_fields=("text",), label_field="label"))


ANSWERS = [("good", 0.75), ("bad", 0.625), ("odd", 0.25)]


def predicted(*shares: tuple[Any, float], **more: Any) -> dict[str, Any]:
    """A prediction with all probabilities."""
    listed = [{"label": label, "probability": share} for label, share in shares]
    return {"label": shares[0][0], "probability": shares[0][1], "probabilities": listed, **more}


def test_every_label_of_an_answer_is_suggested(tmp_path: Path) -> None:
    row = answered_row({"text": "a"}, predicted(*ANSWERS, labels=["good", "bad"]), "r1", numbers=False)
    none = answered_row({"text": "b"}, predicted(("good", 0.25), labels=[]), None, numbers=False)
    path = tmp_path / "suggested.json"
    write_suggestions(JOB, [row, none], path, "argilla")
    first, second = json.loads(path.read_text(encoding="utf-8"))
    assert (first["id"], first["suggestions"]["label"]) == (
        "r1", {"value": ["good", "bad"], "score": [0.75, 0.625], "agent": "onboard mood@v3"},
    )  # fmt: skip
    assert second["suggestions"]["label"]["value"] == []
    assert second["id"] == answered_row({"text": "b"}, predicted(("x", 1.0)), "", numbers=False)["id"]
    write_suggestions(JOB, [row, none], path, "label-studio")
    first, second = json.loads(path.read_text(encoding="utf-8"))
    assert first["predictions"][0]["score"] == 0.625
    assert first["predictions"][0]["result"][0]["value"] == {"choices": ["good", "bad"]}
    assert "predictions" not in second
    write_suggestions(JOB, [row, none], path, "doccano")
    assert [json.loads(line)["label"] for line in path.read_text().splitlines()] == [["good", "bad"], []]


def test_one_label_and_numbers_are_suggested(tmp_path: Path) -> None:
    row = answered_row({"text": "a"}, predicted(*ANSWERS), 7, numbers=False)
    number = answered_row({"text": "a"}, {**predicted((1.0, 0.5), (3.0, 0.5)), "label": 2.0}, None, numbers=True)
    assert (number["value"], number["spread"]) == (2.0, 1.0)
    path = tmp_path / "suggested.json"
    write_suggestions(JOB, [row, number], path, "argilla")
    first, second = json.loads(path.read_text(encoding="utf-8"))
    assert (first["id"], first["suggestions"]["label"]["value"], first["suggestions"]["label"]["score"]) == (
        "7", "good", 0.75,
    )  # fmt: skip
    assert second["suggestions"]["label"]["value"] == 2.0


def test_a_tool_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        write_label_next(JOB, tmp_path / "next.json", "excel")
    assert "label-studio, argilla" in caught.value.remedy
    assert not (tmp_path / "next.json").exists()
