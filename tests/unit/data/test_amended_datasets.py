"""A dataset with more rows, corrected labels, fewer rows or other labels."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.refusals import refused

from onboard.data.amended import is_superset, with_labels, with_rows, without_rows
from onboard.domain.dataset import Dataset, Example, in_canonical_rows

ROWS = in_canonical_rows([
    Example("it barks", None, "dog"), Example("it wags", None, "dog"), Example("it meows", None, "cat"),
    Example("it purrs", None, "cat"),
])  # fmt: skip
PETS = Dataset("classification", ("cat", "dog"), ROWS, test=(Example("it bites", None, "dog"),))
NUMBERS = Dataset(
    "regression", (), in_canonical_rows([Example(f"{place} of 10", None, float(place)) for place in range(11)]),
    low=0.0, high=10.0,
)  # fmt: skip


def test_new_texts_are_added_to_training() -> None:
    amended = with_rows(PETS, [Example("it howls", None, "dog")])
    assert amended.counts == {"added": 1}
    assert len(amended.dataset.train) == 5
    assert amended.dataset.train == in_canonical_rows(amended.dataset.train)
    assert amended.findings == ()


def test_the_same_text_in_other_letters_is_the_same_row() -> None:
    amended = with_rows(PETS, [Example("IT  barks", None, "dog"), Example("it howls", None, "dog")])
    assert amended.counts == {"added": 1, "repeated": 1}


def test_a_contradicting_row_is_left_out_or_corrects_the_stored_one() -> None:
    rows = [Example("It bites", None, "cat"), Example("it howls", None, "dog")]
    left = with_rows(PETS, rows)
    assert left.counts == {"added": 1, "contradicted": 1}
    assert left.dataset.test == PETS.test
    (finding,) = left.findings
    assert finding.examples == ({"text": "It bites", "label": "cat", "present": "dog"},)
    corrected = with_rows(PETS, rows, correct=True)
    assert corrected.counts == {"added": 1, "replaced": 1}
    assert corrected.dataset.test == (Example("it bites", None, "cat"),)


def test_rows_that_change_nothing_are_refused() -> None:
    with refused("rows-change-nothing", rows=1, contradicted=0):
        with_rows(PETS, ROWS[:1])
    with refused("rows-change-nothing", contradicted=1):
        with_rows(PETS, [replace(ROWS[0], label="cat" if ROWS[0].label == "dog" else "dog")])


def test_new_labels_go_where_the_order_of_labels_wants_them() -> None:
    bird = [Example("it sings", None, "bird")]
    assert with_rows(PETS, bird).dataset.labels == ("bird", "cat", "dog")
    assert with_rows(replace(PETS, labels=("dog", "cat")), bird).dataset.labels == ("dog", "cat", "bird")


def test_a_number_a_little_off_repeats_and_one_far_off_contradicts() -> None:
    amended = with_rows(NUMBERS, [
        Example("3 of 10", None, 3.1), Example("4 of 10", None, 9.0), Example("12 of 10", None, 12.0),
    ])  # fmt: skip
    assert amended.counts == {"added": 1, "repeated": 1, "contradicted": 1}
    assert (amended.dataset.low, amended.dataset.high) == (0.0, 12.0)
    assert with_rows(NUMBERS, [Example("3 of 10", None, 3.1)], correct=True).counts == {"replaced": 1}


def test_rows_are_removed_by_their_texts_from_every_split() -> None:
    amended = without_rows(PETS, [("It  barks", None), ("it bites", None), ("it flies", None)])
    assert amended.counts == {"removed": 2, "missing": 1}
    assert (len(amended.dataset.train), amended.dataset.test) == (3, ())


@pytest.mark.parametrize(
    ("dataset", "texts", "type_"),
    [
        (PETS, ["it flies"], "rows-not-in-task"),
        (PETS, ["it meows", "it purrs"], "label-without-rows-left"),
        (NUMBERS, [f"{place} of 10" for place in range(10)], "numbers-left-too-few"),
    ],
)
def test_what_would_leave_nothing_to_learn_is_refused(dataset: Dataset, texts: list[str], type_: str) -> None:
    with refused(type_):
        without_rows(dataset, [(text, None) for text in texts])


def test_labels_are_merged_and_go_with_their_rows() -> None:
    merged = with_labels(PETS, {'"cat"': "pet", '"dog"': "pet"}, ("pet",))
    assert merged.counts == {"replaced": 5}
    gone = with_labels(PETS, {'"cat"': None}, ("dog",))
    assert (gone.counts, len(gone.dataset.train)) == ({"removed": 2}, 2)


def test_a_superset_has_all_rows_and_more_of_training_alone() -> None:
    more = with_rows(PETS, [Example("it howls", None, "dog")]).dataset
    assert is_superset(more, PETS)
    assert not is_superset(PETS, PETS)
    assert not is_superset(PETS, more)
    assert not is_superset(replace(more, test=()), PETS)
    assert not is_superset(replace(more, train=(*more.train[1:], replace(more.train[0], label="cow"))), PETS)
    assert is_superset(with_rows(PETS, [Example("it sings", None, "bird")]).dataset, PETS)
