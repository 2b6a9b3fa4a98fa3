"""Labels without rows: what is refused, what is warned of, what a test split and unlabelled texts add; descriptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused

from onboard.data.descriptions import MOST_CHARACTERS, descriptions_of
from onboard.data.labels_alone import read_labels
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.snapshot import digest, load, save
from onboard.domain.dataset import Example, Label
from onboard.errors import DatasetError

TONE = ("praise", "complaint", "question")


def labels_of(*labels: Label, **options: Any) -> Any:
    return read_labels(ReadOptions(labels=labels or TONE, **options))


def test_labels_are_a_dataset_without_rows() -> None:
    checked = labels_of()
    assert (checked.dataset.labels, checked.dataset.train, checked.dataset.kind) == (TONE, (), "classification")
    assert load(save(checked.dataset)) == checked.dataset
    report = checked.report.to_json()
    assert report["rows"] == {"train": 0, "validation": 0, "test": 0}
    assert [(row["label"], row["word"]) for row in report["labels"]] == [(label, label) for label in TONE]
    assert report["validation"] == {"method": "none", "held_out": 0}
    assert (report["warnings"], report["digest"]) == ([], digest(checked.dataset))


@pytest.mark.parametrize(
    ("labels", "options", "type_", "fact"),
    [
        (("praise",), {}, "labels-too-few", {"labels": ["praise"]}),
        (("praise", "complaint", "praise"), {}, "label-repeated", {"label": "praise"}),
        (("praise", "praise"), {}, "label-repeated", {"label": "praise", "field": "labels"}),
        (("card lost", "Card_Lost"), {}, "labels-read-alike", {"labels": ["card lost", "Card_Lost"]}),
        (("1", "1.0"), {}, "labels-read-alike", {"labels": ["1", "1.0"]}),
        (("a" * 201, "b"), {}, "label-too-long", {"characters": 201, "limit": 200}),
        (TONE, {"validation": "rows.jsonl"}, "option-needs-rows", {"option": "--validation"}),
        (TONE, {"shots": 8}, "option-needs-rows", {"option": "--rows 8"}),
        (TONE, {"text_fields": ("body",)}, "option-needs-rows", {"option": "--text-field"}),
        (TONE, {"label_field": "tone"}, "option-needs-rows", {"option": "--label-field", "field": "label_field"}),
        (TONE, {"descriptions": ("prase=thanks",)}, "description-of-unknown-label", {"label": "prase"}),
    ],
)  # fmt: skip
def test_what_no_task_can_start_from_is_refused(
    labels: tuple[str, ...], options: Any, type_: str, fact: dict[str, Any]
) -> None:
    with refused(type_, **fact) as caught:
        labels_of(*labels, **options)
    assert caught.value.remedy


def test_no_labels_at_all_are_refused() -> None:
    with refused("labels-too-few", labels=[]):
        read_labels(ReadOptions())


def test_a_regression_has_no_labels_to_start_from() -> None:
    with refused("labels-with-regression"):
        labels_of(kind="regression")


def test_labels_that_say_little_are_warned_of_unless_they_are_described() -> None:
    (warning,) = labels_of("17", "Q-4", "praise").report.warnings
    assert (warning.code, warning.count) == ("labels_say_little", 2)
    assert "'17', 'Q-4'" in warning.message
    assert labels_of("17", "praise", descriptions=("17=angry words",)).report.warnings == ()


def test_a_test_split_is_held_to_the_labels(write_jsonl: Callable[..., Path]) -> None:
    rows = [{"text": f"well done {number}", "label": "praise"} for number in range(4)]
    checked = labels_of(test=write_jsonl([*rows, rows[0]]))
    assert len(checked.dataset.test) == 4
    assert [warning.code for warning in checked.report.warnings] == ["exact_duplicates"]
    assert checked.report.fields.text == ("text",)
    stray = write_jsonl([*rows, {"text": "who knows", "label": "doubt"}])
    with refused("unknown-label", field="label", row=5):
        labels_of(test=stray)
    assert len(labels_of(test=stray, unknown_labels="drop").dataset.test) == 4


@pytest.mark.parametrize(
    ("written", "given", "expected"),
    [
        (("1", "0"), (1, 0), (1, 0)),
        (("true", "false"), (True, False), (True, False)),
        (("1", "2"), (1.5, 2, 1), None),
        (("0.5", "1"), (0.5, 1), (0.5, 1.0)),
    ],
)
def test_labels_take_the_types_of_the_test_rows(
    write_jsonl: Callable[..., Path], written: tuple[str, ...], given: tuple[Label, ...], expected: Any
) -> None:
    test = write_jsonl([{"text": f"row {place}", "label": label} for place, label in enumerate(given)])
    if expected is None:
        with refused("unknown-label", field="label", row=1):
            labels_of(*written, test=test)
    else:
        assert labels_of(*written, test=test).dataset.labels == expected


def test_unlabelled_texts_come_along_and_pairs_stay_pairs(write_jsonl: Callable[..., Path]) -> None:
    pool = write_jsonl([{"text_a": f"a {number}", "text_b": "b"} for number in range(9)])
    checked = labels_of(unlabelled=pool)
    assert checked.unlabelled is not None
    assert [row.text_b for row in checked.unlabelled.rows] == ["b"] * 9
    single = write_jsonl([{"text": "well done", "label": "praise"}], "test.jsonl")
    with refused("text-field"):
        labels_of(unlabelled=pool, test=single)


def test_what_is_wrong_with_a_file_is_told(write_jsonl: Callable[..., Path], tmp_path: Path) -> None:
    with refused("empty-text", field="text", row=1):
        labels_of(test=write_jsonl([{"text": "", "label": "praise"}]))
    with pytest.raises(DatasetError):
        labels_of(unlabelled=tmp_path / "none.jsonl")


def test_a_description_is_for_a_label_by_its_text() -> None:
    given = ["card=lost or  stolen\n bank card", "true = it holds", "a=b=is an equation", "7=seven"]
    described = descriptions_of(given, ["card", True, "a=b", 7])
    assert described == {
        '"card"': "lost or stolen bank card", "true": "it holds", '"a=b"': "is an equation", "7": "seven",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("given", "type_", "label"),
    [
        (["card"], "description-malformed", "card"),
        (["card= \u200b "], "description-empty", "card"),
        (["card=a", "card=b"], "description-repeated", "card"),
        (["cart=a"], "description-of-unknown-label", "cart"),
        ([f"card={'x' * (MOST_CHARACTERS + 1)}"], "description-too-long", "card"),
    ],
)
def test_a_description_that_says_nothing_of_a_label_is_refused(given: list[str], type_: str, label: str) -> None:
    with refused(type_, label=label, field="label_description"):
        descriptions_of(given, ["card", "cash"])


def test_a_dataset_with_rows_may_be_described_too(write_jsonl: Callable[..., Path]) -> None:
    rows = [{"text": f"row {number}", "label": "ab"[number % 2]} for number in range(8)]
    path = write_jsonl(rows)
    assert read_dataset(path, ReadOptions(descriptions=("a=first",))).dataset.train[0] == Example("row 0", None, "a")
    with refused("description-of-unknown-label"):
        read_dataset(path, ReadOptions(descriptions=("c=third",)))
    scale = write_jsonl([{"text": f"row {number}", "label": number / 7} for number in range(40)], "scale.jsonl")
    with refused("description-of-regression"):
        read_dataset(scale, ReadOptions(descriptions=("1=most",)))
