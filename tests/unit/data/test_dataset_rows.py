"""What is wrong with texts and labels of single rows: all of it is told together, with row, field and remedy."""

from __future__ import annotations

import math

import pytest
from dataset_rows import balanced

from onboard.data.limits import MAX_LABEL_CHARACTERS, MAX_PROBLEMS_LISTED
from onboard.data.read import ReadOptions, read_dataset
from onboard.domain.limits import MAX_TEXT_CHARACTERS
from onboard.errors import DatasetError, InputError


@pytest.mark.parametrize(
    ("row", "code", "field"),
    [
        ({"label": "good"}, "missing_text", "text"),
        ({"text": None, "label": "good"}, "missing_text", "text"),
        ({"text": " \t ", "label": "good"}, "empty_text", "text"),
        ({"text": 7, "label": "good"}, "text_type", "text"),
        ({"text": ["a"], "label": "good"}, "text_type", "text"),
        ({"text": "x" * (MAX_TEXT_CHARACTERS + 1), "label": "good"}, "text_too_long", "text"),
        ({"text": "half \ud83d a pair", "label": "good"}, "not_utf8", "text"),
        ({"text": "a"}, "missing_label", "label"),
        ({"text": "a", "label": None}, "missing_label", "label"),
        ({"text": "a", "label": "  "}, "missing_label", "label"),
        ({"text": "a", "label": math.nan}, "nan_label", "label"),
        ({"text": "a", "label": math.inf}, "nan_label", "label"),
        ({"text": "a", "label": ["good"]}, "mixed_labels", "label"),
        ({"text": "a", "label": {"name": "good"}}, "label_type", "label"),
        ({"text": "a", "label": "go\x00od"}, "label_type", "label"),
        ({"text": "a", "label": "half \udc00"}, "not_utf8", "label"),
        ({"text": "a", "label": "x" * (MAX_LABEL_CHARACTERS + 1)}, "label_too_long", "label"),
    ],
)
def test_a_wrong_row_is_told_with_its_number_and_field(row, code, field, write_jsonl, problems_of) -> None:
    rows = balanced()
    rows.insert(4, row)
    (problem,) = problems_of(write_jsonl(rows))
    assert (problem["row"], problem["code"], problem["field"]) == (5, code, field)
    assert problem["remedy"]
    assert problem["message"].isascii()


@pytest.mark.parametrize("name", ["la\0bel", "label\n", "la\x7fbel", "la\ud800bel"])
def test_a_column_whose_name_nobody_could_store_is_refused(name, write_jsonl, problems_of) -> None:
    labelled = write_jsonl([{"text": row["text"], name: row["label"]} for row in balanced()])
    named = write_jsonl([{name: row["text"], "label": row["label"]} for row in balanced()], "named.jsonl")
    for problem in (
        *problems_of(labelled, label_field=name),
        *problems_of(named, text_fields=(name,)),
    ):
        assert problem["code"] == "field_name"
        assert "control character" in problem["message"]
        assert problem["message"].isprintable()


def test_a_usual_name_with_a_line_break_is_not_taken_for_the_label(write_jsonl, problems_of) -> None:
    (problem,) = problems_of(write_jsonl([{"text": row["text"], "label\n": row["label"]} for row in balanced()]))
    assert problem["code"] == "field_name"


def test_both_faults_of_one_row_are_told(write_jsonl, problems_of) -> None:
    problems = problems_of(write_jsonl([*balanced(), {"text": "", "label": None}]))
    assert [problem["code"] for problem in problems] == ["empty_text", "missing_label"]


def test_a_missing_half_of_a_pair_is_told_by_its_field(write_jsonl, problems_of) -> None:
    rows = [{"premise": f"p {i}", "hypothesis": f"h {i}", "label": f"l{i % 2}"} for i in range(6)]
    del rows[2]["hypothesis"]
    (problem,) = problems_of(write_jsonl(rows))
    assert (problem["row"], problem["code"], problem["field"]) == (3, "missing_text", "hypothesis")


def test_all_problems_are_counted_and_the_first_hundred_are_listed(write_jsonl) -> None:
    rows = [{"text": "", "label": "x"}] * (MAX_PROBLEMS_LISTED + 50)
    with pytest.raises(DatasetError) as caught:
        read_dataset(write_jsonl(rows))
    assert len(caught.value.data["problems"]) == MAX_PROBLEMS_LISTED
    assert caught.value.data["problem_counts"] == {"empty_text": MAX_PROBLEMS_LISTED + 50, "one_label": 1}
    assert f"{MAX_PROBLEMS_LISTED + 51} problems" in caught.value.message
    assert f"{MAX_PROBLEMS_LISTED + 48} more" in caught.value.message


def test_problems_of_all_splits_are_told_together(write_jsonl, problems_of, tmp_path) -> None:
    train = write_jsonl([*balanced(), {"text": "", "label": "good"}], "train.jsonl")
    validation = write_jsonl([{"text": "unseen", "label": ""}], "validation.jsonl")
    problems = problems_of(train, validation=validation, test=tmp_path / "missing.jsonl", hide_folders=True)
    assert [(problem["file"], problem["code"]) for problem in problems] == [
        ("train.jsonl", "empty_text"),
        ("validation.jsonl", "missing_label"),
        ("missing.jsonl", "missing_file"),
    ]


def test_nan_in_csv_is_no_label(write_bytes, problems_of) -> None:
    (problem,) = problems_of(write_bytes(b"text,label\na,x\nb,NaN\nc,y\n", "d.csv"))
    assert (problem["row"], problem["line"], problem["code"]) == (2, 3, "nan_label")


def test_texts_are_stripped_and_otherwise_as_written(write_jsonl, read) -> None:
    dataset = read(write_jsonl([{"text": "  Two  Words\n", "label": 1}, {"text": "other", "label": 2}])).dataset
    assert {row.text_a for row in dataset.train} == {"Two  Words", "other"}


@pytest.mark.parametrize(
    "options",
    [
        {"shots": 0},
        {"kind": "ranking"},
        {"kind": "regression", "labels": ("a", "b")},
        {"labels": ("a",)},
        {"labels": ("a", "a")},
        {"text_fields": ("a", "b", "c")},
    ],
)
def test_options_that_make_no_sense_are_refused(options) -> None:
    with pytest.raises(InputError) as caught:
        ReadOptions(**options)
    assert caught.value.remedy
