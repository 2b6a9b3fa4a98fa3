"""What labels are taken for: classes with their types, numbers on a scale, a declared set."""

from __future__ import annotations

import pytest
from dataset_rows import balanced

from onboard.data.labels import REGRESSION_KINDS
from onboard.domain.dataset import in_canonical_order, label_key


def scale(count: int, step: float, as_text: bool = False) -> list[dict[str, object]]:
    values = [i * step for i in range(count)]
    return [{"text": f"row {i}", "label": str(value) if as_text else value} for i, value in enumerate(values)]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((True, False), (False, True)),
        ((3, 1, 10), (1, 3, 10)),
        (("b", "a"), ("a", "b")),
        ((1, "1", True), (True, 1, "1")),
        ((0, 0.5, 1), (0.0, 0.5, 1.0)),
        ((-0.0, 0.0, 1.5), (0.0, 1.5)),
        ((10**30, 2), (2, 10**30)),
    ],
)
def test_labels_keep_their_types_in_a_canonical_order(labels, expected, write_jsonl, read) -> None:
    dataset = read(write_jsonl(balanced(12, labels))).dataset
    assert dataset.kind == "classification"
    assert list(map(label_key, dataset.labels)) == list(map(label_key, expected))
    assert len(dataset.class_indices(dataset.train)) == 12


def test_integers_of_csv_stay_strings(write_bytes, read) -> None:
    assert read(write_bytes(b"text,label\na,1\nb,0\n", "d.csv")).dataset.labels == ("0", "1")


@pytest.mark.parametrize("as_text", [False, True])
def test_more_than_20_values_with_fractions_are_a_regression(as_text, write_jsonl, read) -> None:
    more = scale(2 * REGRESSION_KINDS + 2, 0.5, as_text)  # every other one is an integer
    dataset = read(write_jsonl(more)).dataset
    assert (dataset.kind, dataset.labels, dataset.low, dataset.high) == ("regression", (), 0.0, 20.5)
    assert all(type(row.label) is float for row in dataset.train)
    assert read(write_jsonl(more[:-1])).dataset.kind == "classification"


@pytest.mark.parametrize(
    "rows", [scale(60, 1.0), scale(60, 1, as_text=True), [*scale(60, 0.5, as_text=True), *balanced()]]
)
def test_integers_of_any_number_and_mixed_strings_are_classes(rows, write_jsonl, read) -> None:
    assert read(write_jsonl(rows)).dataset.kind == "classification"


def test_regression_on_request_takes_numbers_and_strings_of_numbers(write_jsonl, read, problems_of) -> None:
    rows = [{"text": "a", "label": 1}, {"text": "b", "label": " 2.5 "}, {"text": "c", "label": -3e0}]
    dataset = read(write_jsonl(rows), kind="regression").dataset
    assert (dataset.low, dataset.high) == (-3.0, 2.5)
    bad = [True, "nan", "1_000", "two", 1e13, "1e999"]
    rows += [{"text": f"bad {i}", "label": label} for i, label in enumerate(bad)]
    problems = problems_of(write_jsonl(rows), kind="regression")
    assert [(problem["row"], problem["code"]) for problem in problems] == [
        (4 + i, "not_a_number") for i in range(len(bad))
    ]


def test_numbers_with_few_fractions_are_classes_with_a_hint(write_jsonl, warning_of) -> None:
    assert "--kind regression" in warning_of("numeric_labels", write_jsonl(scale(8, 0.5))).remedy


@pytest.mark.parametrize(
    ("rows", "options"),
    [
        (balanced(8, ("only",)), {}),
        (balanced(8, (1.5,)), {"kind": "regression"}),
        (balanced(8, ("1", "1.0")), {"kind": "regression"}),
        (balanced(8, ("only",)), {"labels": ("only", "other")}),
    ],
)
def test_fewer_than_two_labels_are_refused(rows, options, write_jsonl, problems_of) -> None:
    assert [problem["code"] for problem in problems_of(write_jsonl(rows), **options)] == ["one_label"]


def test_a_label_on_rows_with_a_wrong_text_counts_as_a_label(write_jsonl, problems_of) -> None:
    rows = [*balanced(6, ("a",)), {"text": "", "label": "b"}]
    validation = write_jsonl([{"text": "unseen", "label": "b"}], "validation.jsonl")
    assert [problem["code"] for problem in problems_of(write_jsonl(rows), validation=validation)] == ["empty_text"]


def test_more_labels_than_anyone_means_are_refused(write_jsonl, problems_of, monkeypatch) -> None:
    monkeypatch.setattr("onboard.data.labels.MAX_LABELS", 5)
    assert problems_of(write_jsonl(balanced(8, tuple("abcdef"))))[0]["code"] == "too_many_labels"


def test_labels_of_other_splits_that_training_lacks_are_named(write_jsonl, problems_of) -> None:
    train = write_jsonl(balanced(), "train.jsonl")
    test = write_jsonl([*balanced(2), {"text": "x", "label": "ugly"}, {"text": "y", "label": "ugly"}], "test.jsonl")
    (problem,) = problems_of(train, test=test)
    assert (problem["code"], problem["row"]) == ("unknown_label", 3)
    assert '"ugly" (2 rows)' in problem["message"]


def test_labels_outside_a_declared_set_are_told(write_jsonl, problems_of) -> None:
    rows = [{"text": row["text"], "category": row["label"]} for row in balanced()]
    (problem,) = problems_of(write_jsonl([*rows, {"text": "x", "category": "ugly"}]), labels=("good", "bad"))
    assert (problem["code"], problem["row"], problem["field"]) == ("unknown_label", 21, "category")


@pytest.mark.parametrize(
    ("labels", "declared", "expected"),
    [
        (("a", "b"), ("b", "a"), ("b", "a")),
        ((0, 1), ("1", "0"), (1, 0)),
        ((True, False), ("True", "false"), (True, False)),
        ((0.5, 1.5), ("1.5", "0.50"), (1.5, 0.5)),
        ((0, 1), (1, 0), (1, 0)),
        ((0, 1), ("0", "1", "2"), (0, 1, 2)),
        (("a", "b"), ("a", "b", "2"), ("a", "b", "2")),
    ],
)
def test_a_declared_set_gives_the_order_and_takes_the_types_of_the_data(
    labels, declared, expected, write_jsonl, read
) -> None:
    dataset = read(write_jsonl(balanced(8, labels)), labels=declared).dataset
    assert list(map(label_key, dataset.labels)) == list(map(label_key, expected))


def test_a_declared_label_without_rows_is_a_warning_and_may_stand_in_the_test_split(write_jsonl, warning_of) -> None:
    test = write_jsonl([{"text": "x", "label": "ugly"}], "test.jsonl")
    options = {"labels": ("good", "bad", "ugly"), "test": test}
    finding = warning_of("label_without_rows", write_jsonl(balanced()), **options)
    assert finding.examples == ({"label": "ugly", "rows": 0},)


def test_the_canonical_order_tells_types_apart_and_merges_the_same() -> None:
    mixed = in_canonical_order([1, True, "1", 1.0, 0, False, 1, "a"])
    assert list(map(label_key, mixed)) == ["false", "true", "0", "1", "1.0", '"1"', '"a"']
