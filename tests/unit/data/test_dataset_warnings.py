"""Warnings leave the dataset usable and say, with counts and rows, what was found and done."""

from __future__ import annotations

import random

import pytest
from dataset_rows import balanced

from onboard.data.suspects import MOST_ROWS, contradicted_by_words
from onboard.domain.dataset import Example, label_key


def labelled(counts: dict[object, int]) -> list[dict[str, object]]:
    return [{"text": f"{label!r} {i}", "label": label} for label, count in counts.items() for i in range(count)]


def test_exact_duplicates_are_kept_once(write_jsonl, read, warning_of) -> None:
    path = write_jsonl([*balanced(), *balanced(3)])
    finding = warning_of("exact_duplicates", path)
    assert finding.count == 3
    assert finding.examples[0]["rows"] == [1, 21]
    assert len(read(path).dataset.train) == 20


def test_up_to_a_tenth_of_conflicting_rows_are_all_dropped(write_jsonl, read, warning_of) -> None:
    rows = balanced(18)
    rows += [{"text": "torn", "label": "good"}, {"text": "torn", "label": "bad"}]
    finding = warning_of("conflicting_labels", write_jsonl(rows))
    assert finding.count == 2
    assert (finding.examples[0]["rows"], finding.examples[0]["labels"]) == ([19, 20], ["good", "bad"])
    assert "torn" not in {row.text_a for row in read(write_jsonl(rows)).dataset.train}


def test_more_than_a_tenth_of_conflicting_rows_are_an_error(write_jsonl, problems_of) -> None:
    rows = balanced(17)
    rows += [{"text": "torn", "label": "good"}, {"text": "torn", "label": "bad"}]
    (problem,) = problems_of(write_jsonl(rows))
    assert problem["code"] == "conflicting_labels"
    assert "2 of 19 rows (11%)" in problem["message"]
    assert "rows 18" in problem["message"]


def test_typed_labels_conflict_though_python_calls_them_equal(write_jsonl, warning_of) -> None:
    rows = [*balanced(18, (True, 1)), {"text": "torn", "label": True}, {"text": "torn", "label": 1}]
    assert warning_of("conflicting_labels", write_jsonl(rows)).count == 2


def test_conflicts_that_leave_one_label_are_an_error(write_jsonl, problems_of) -> None:
    rows = [*balanced(20, ("good",)), {"text": "torn", "label": "good"}, {"text": "torn", "label": "bad"}]
    assert problems_of(write_jsonl(rows))[0]["code"] == "one_label"


def test_regression_values_of_one_text_conflict_beyond_one_bucket(write_jsonl, read, warning_of) -> None:
    rows = [{"text": f"t {i}", "label": i / 4} for i in range(21)]  # 0 to 5: a bucket is 0.25 wide
    near = [*rows, {"text": "t 8", "label": 2.2}]
    assert len(read(write_jsonl(near), kind="regression").dataset.train) == 22
    far = [*rows, {"text": "t 8", "label": 2.3}]
    assert warning_of("conflicting_labels", write_jsonl(far), kind="regression").count == 2


def test_rows_shared_between_splits_are_dropped_from_the_later_one(write_jsonl, read) -> None:
    train = write_jsonl(balanced(20), "train.jsonl")
    unseen = [{"text": f"unseen {i}", "label": "good"} for i in range(4)]
    validation = write_jsonl([{"text": "SENTENCE  number 3", "label": "good"}, *unseen[:2]], "validation.jsonl")
    test = write_jsonl([*balanced(2), *unseen[1:]], "test.jsonl")
    checked = read(train, validation=validation, test=test)
    findings = [finding for finding in checked.report.warnings if finding.code == "shared_rows"]
    assert [finding.count for finding in findings] == [1, 3]
    assert findings[0].examples[0]["also_in"] == {"split": "train", "row": 4}
    assert [finding.examples[-1]["also_in"]["split"] for finding in findings] == ["train", "validation"]
    assert checked.report.rows == {"train": 20, "validation": 2, "test": 2}
    assert checked.report.rows_read == {"train": 20, "validation": 3, "test": 5}


def test_a_split_that_repeats_training_is_left_empty_and_said_so(write_jsonl, read) -> None:
    path = write_jsonl(balanced())
    checked = read(path, validation=path)
    assert checked.dataset.validation == ()
    assert any("no row of the validation split is left" in finding.message for finding in checked.report.warnings)
    assert checked.report.validation.method == "cross_validated"


def test_labels_of_a_single_row_are_named(write_jsonl, warning_of) -> None:
    finding = warning_of("single_row_label", write_jsonl(labelled({"common": 5, "rare": 1})))
    assert finding.examples == ({"label": "rare", "rows": 1},)


@pytest.mark.parametrize(
    "labels",
    [
        {"Positive": 5, "positive ": 5},
        {"not_ok": 5, "not ok": 5},
        {"card-lost": 5, "card lost": 5},
        {1: 5, "1": 5},
        {True: 5, "True": 5},
        {"positive": 40, "postive": 2},
        {"entailment": 40, "entialment": 1},
        {"neutral": 40, "neutrall": 2},
    ],
)
def test_labels_that_may_be_one_are_told_and_kept_apart(labels, write_jsonl, read, warning_of) -> None:
    path = write_jsonl(labelled(labels))
    assert list(warning_of("near_identical_labels", path).examples[0]["labels"]) == list(read(path).dataset.labels)


@pytest.mark.parametrize(
    "labels",
    [
        {"positive": 5, "negative": 5},
        {"A+": 5, "A-": 5, "A": 5},
        {"label_1": 40, "label_2": 1},
        {"moral": 5, "amoral": 5},
        {"entailment": 40, "not_entailment": 1},
        {"😀": 5, "😢": 5},
        {1: 5, 2: 5},
    ],
)
def test_labels_that_differ_are_not_called_alike(labels, write_jsonl, read) -> None:
    codes = [finding.code for finding in read(write_jsonl(labelled(labels))).report.warnings]
    assert "near_identical_labels" not in codes


def test_imbalance_is_told_from_ten_to_one_on(write_jsonl, read, warning_of) -> None:
    assert warning_of("imbalance", write_jsonl(labelled({"a": 20, "b": 2}))).examples[0] == {"label": "a", "rows": 20}
    codes = [finding.code for finding in read(write_jsonl(labelled({"a": 19, "b": 2}))).report.warnings]
    assert "imbalance" not in codes


def test_cut_texts_are_counted_by_the_tokenizer_that_is_given(write_jsonl, read, warning_of) -> None:
    rows = [{"text_a": "word " * i, "text_b": "word", "label": f"l{i % 2}"} for i in range(1, 21)]

    def count_tokens(text_a: str, text_b: str | None) -> int:
        return len(text_a.split()) + len((text_b or "").split())

    finding = warning_of("cut_texts", write_jsonl(rows), count_tokens=count_tokens, max_tokens=16)
    assert finding.count == 5
    assert "5 of 20 rows" in finding.message
    assert {example["tokens"] for example in finding.examples} <= set(range(17, 22))
    codes = [
        warning.code for warning in read(write_jsonl(rows), count_tokens=count_tokens, max_tokens=21).report.warnings
    ]
    assert "cut_texts" not in codes


def wordy_rows(count: int, flipped: set[int]) -> list[dict[str, object]]:
    """Rows whose words tell the label, but for those that are flipped."""
    draw = random.Random(0)
    words = {"good": ["lovely", "great", "superb", "charming"], "bad": ["awful", "dull", "poor", "dreadful"]}
    rows = []
    for i in range(count):
        true, false = ("good", "bad") if i % 2 else ("bad", "good")
        text = f"{draw.choice(words[true])} {draw.choice(words[true])} film {draw.randrange(50)}"
        rows.append({"text": f"{text} {i}", "label": false if i in flipped else true})
    return rows


def test_flipped_labels_are_suspected_and_their_rows_named(write_jsonl, warning_of) -> None:
    flipped = {7, 30, 55, 90}
    finding = warning_of("suspected_label_errors", write_jsonl(wordy_rows(400, flipped)))
    assert finding.count == 4
    assert {example["row"] - 1 for example in finding.examples} == flipped
    assert all(example["label"] != example["likelier"] for example in finding.examples)


def test_nothing_is_suspected_where_words_say_nothing_or_rows_are_few_or_many() -> None:
    noise = [Example(f"row {i * 7919 % 1000}", None, i % 2) for i in range(200)]
    clear = [Example(str(row["text"]), None, str(row["label"])) for row in wordy_rows(200, {1})]
    assert contradicted_by_words(clear)
    assert contradicted_by_words(noise) == []
    draw = random.Random(3)
    drowned = [Example(f"row {draw.randrange(10**6)}", None, draw.choice(("good", "bad"))) for _ in range(500)]
    assert contradicted_by_words([*drowned, *clear]) == []
    assert contradicted_by_words(clear[:40]) == []
    assert contradicted_by_words(clear * (MOST_ROWS // 200 + 1)) == []
    assert contradicted_by_words([Example(row.text_a, "b", row.label) for row in clear]) == []


def test_suspects_can_be_left_out(write_jsonl, read) -> None:
    path = write_jsonl(wordy_rows(200, {7}))
    assert read(path, suspects=False).report.warnings == ()


@pytest.mark.parametrize(
    ("rows", "validation", "expected"),
    [(64, False, ("cross_validated", 0)), (80, False, ("held_out", 20)), (80, True, ("submitted", 0))],
)
def test_the_report_says_where_validation_comes_from(rows, validation, expected, write_jsonl, read) -> None:
    path = write_jsonl([{"text": "unseen", "label": "good"}], "validation.jsonl") if validation else None
    report = read(write_jsonl(balanced(rows)), validation=path).report
    assert (report.validation.method, report.validation.held_out) == expected


def test_shots_are_drawn_after_the_checks_and_the_report_is_about_them(write_jsonl, read, warning_of) -> None:
    path = write_jsonl(balanced(200))
    report = read(path, shots=10, seed=1).report
    assert (report.rows_read["train"], report.rows["train"]) == (200, 10)
    assert report.digest != read(path, shots=10, seed=2).report.digest != read(path).report.digest
    assert warning_of("few_rows", path, shots=201).count == 200
    assert warning_of("label_without_rows", path, shots=1).count == 1


@pytest.mark.parametrize(
    ("counts", "method"),
    [({"a": 4, "b": 3}, "none"), ({"a": 4, "b": 4}, "cross_validated"), (dict.fromkeys("abcdefgh", 1), "none")],
)
def test_an_estimate_is_announced_only_where_there_will_be_one(write_jsonl, read, counts, method) -> None:
    assert read(write_jsonl(labelled(counts))).report.to_json()["validation"]["method"] == method


def test_the_report_is_a_json_document_with_everything(write_jsonl, read) -> None:
    report = read(write_jsonl(labelled({"CardLost": 3, True: 2}))).report.to_json()
    assert report["labels"] == [
        {"label": True, "word": "true", "train": 2, "validation": 0, "test": 0},
        {"label": "CardLost", "word": "card lost", "train": 3, "validation": 0, "test": 0},
    ]
    assert [label_key(counted["label"]) for counted in report["labels"]] == ["true", '"CardLost"']
    assert report["validation"] == {"method": "none", "held_out": 0}
    assert report["digest"].startswith("sha256:")
    assert report["warnings"] == []
