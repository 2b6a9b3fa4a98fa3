"""Draws, hold-outs and folds: balanced, seeded, independent of the order of the rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.data.splits import HOLDOUT_MOST_ROWS, fair_order, folds, holdout, shots
from onboard.domain.dataset import Dataset, Example, example_key
from onboard.errors import InputError


def classes(*sizes: int) -> Dataset:
    rows = [Example(f"class {k} row {i}", None, k) for k, size in enumerate(sizes) for i in range(size)]
    return Dataset("classification", tuple(range(len(sizes))), tuple(rows))


def values(count: int) -> Dataset:
    rows = tuple(Example(f"row {i}", "b", i / 7) for i in range(count))
    return Dataset("regression", (), rows, low=0.0, high=(count - 1) / 7)


def counts(rows: tuple[Example, ...]) -> dict[object, int]:
    return dict(Counter(row.label for row in rows))


@pytest.mark.parametrize(
    ("sizes", "rows", "expected"),
    [
        ((100, 100), 16, [8, 8]),
        ((100, 100, 100), 16, [5, 5, 6]),
        ((100, 3, 100), 16, [3, 6, 7]),
        ((100, 1), 16, [1, 15]),
        ((9, 9, 9, 9, 9, 9), 4, [1, 1, 1, 1]),
        ((5, 5), 10, [5, 5]),
        ((5, 5), 99, [5, 5]),
    ],
)
def test_shots_are_as_balanced_as_the_data_allow(sizes, rows, expected) -> None:
    drawn = shots(classes(*sizes), rows, seed=0)
    assert sorted(counts(drawn.train).values()) == expected
    assert drawn.labels == tuple(range(len(sizes)))


def test_shots_below_one_are_refused() -> None:
    with pytest.raises(InputError):
        shots(classes(5, 5), 0, seed=0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=5),
    st.integers(1, 90),
    st.integers(0, 5),
    st.randoms(use_true_random=False),
)
def test_draws_do_not_depend_on_the_order_of_the_file_and_grow_with_their_size(sizes, rows, seed, draw) -> None:
    dataset = classes(*sizes)
    shuffled = list(dataset.train)
    draw.shuffle(shuffled)
    other = replace(dataset, train=tuple(shuffled))
    few, more = shots(dataset, rows, seed), shots(dataset, rows + 7, seed)
    assert set(few.train) <= set(more.train) <= set(dataset.train)
    assert len(few.train) == min(rows, sum(sizes))
    assert sorted(map(example_key, shots(other, rows, seed).train)) == sorted(map(example_key, few.train))
    held, other_held = holdout(dataset, seed), holdout(other, seed)
    assert (held.validation, set(held.train)) == (other_held.validation, set(other_held.train))


def test_the_seed_changes_the_draw() -> None:
    dataset = classes(50, 50)
    assert len({shots(dataset, 16, seed).train for seed in range(5)}) == 5
    assert len({holdout(dataset, seed).validation for seed in range(5)}) == 5


def test_up_to_64_rows_nothing_is_held_out() -> None:
    assert holdout(classes(32, 32), seed=0).validation == ()
    assert len(holdout(classes(33, 32), seed=0).validation) == 16


def test_a_submitted_validation_split_is_kept() -> None:
    dataset = replace(classes(100, 100), validation=(Example("mine", None, 0),))
    assert holdout(dataset, seed=0) is dataset


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((100, 100), {0: 25, 1: 25}),
        ((160, 40), {0: 40, 1: 10}),
        ((97, 2, 1), {0: 24, 1: 1}),
        ((394, 2, 2, 2), {0: 97, 1: 1, 2: 1, 3: 1}),
        ((4000, 4000), {0: 256, 1: 256}),
    ],
)
def test_a_quarter_is_held_out_in_proportion_and_of_every_class_one_row(sizes, expected) -> None:
    dataset = classes(*sizes)
    held = holdout(dataset, seed=3)
    assert counts(held.validation) == expected
    assert len(held.train) + len(held.validation) == sum(sizes)
    assert not set(held.train) & set(held.validation)
    assert len(counts(held.train)) == len(sizes)


def test_the_cap_holds_with_more_classes_than_it() -> None:
    assert len(holdout(classes(*[3] * 600), seed=0).validation) == 450
    assert len(holdout(classes(*[3] * 900), seed=0).validation) == HOLDOUT_MOST_ROWS


@pytest.mark.parametrize("sizes", [(20, 20), (33, 5, 2), (1, 9), (3, 3)])
def test_folds_part_the_rows_and_are_stratified(sizes) -> None:
    dataset = classes(*sizes)
    parts = folds(dataset, 5, seed=1)
    assert sorted(index for part in parts for index in part) == list(range(sum(sizes)))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for label, size in enumerate(sizes):
        of_label = [sum(dataset.train[index].label == label for index in part) for part in parts]
        assert max(of_label) - min(of_label) <= 1, size


def pairs(*rows: tuple[str, str | None]) -> Dataset:
    """Rows of two labels in turn."""
    labels = ("no", "yes")
    texts = tuple(Example(first, second, labels[place % 2]) for place, (first, second) in enumerate(rows))
    return Dataset("classification", labels, texts)


def test_rows_that_share_a_text_stand_in_one_fold() -> None:
    alone = [(f"premise {number}", f"claim {number}") for number in range(9)]
    chain = [("The sun is hot", "It shines"), ("Snow falls", "the  SUN is hot"), ("snow falls", "it is cold")]
    dataset = pairs(*alone, *chain)
    linked = {index for index, row in enumerate(dataset.train) if not row.text_a.startswith("premise")}
    for seed in range(5):
        parts = folds(dataset, 4, seed)
        assert sum(bool(linked & set(part)) for part in parts) == 1
        assert sorted(map(len, parts)) == [3, 3, 3, 3]
        assert all(len({dataset.train[index].label for index in part}) == 2 for part in parts)


def texts_of(rows: Sequence[Example]) -> set[str | None]:
    return {text for row in rows for text in (row.text_a, row.text_b)}


def test_rows_that_share_a_text_are_held_out_together() -> None:
    linked = [(f"premise {number // 4}", f"claim {number}") for number in range(48)]
    alone = [(f"text {number}", f"other {number}") for number in range(56)]
    for seed in range(5):
        held = holdout(pairs(*linked, *alone), seed)
        assert not texts_of(held.train) & texts_of(held.validation)
        assert texts_of(held.train) & texts_of(pairs(*linked).train)
        assert texts_of(held.validation) & texts_of(pairs(*linked).train)
        assert [sum(row.label == label for row in held.validation) for label in ("no", "yes")] == [13, 13]


def test_a_text_that_most_rows_hold_is_what_the_task_is_about() -> None:
    dataset = pairs(*((f"question {number}", "the only answer") for number in range(12)))
    assert [len(part) for part in folds(dataset, 4, seed=0)] == [3, 3, 3, 3]
    assert (
        len(holdout(pairs(*((f"question {number}", "the only answer") for number in range(100))), 0).validation) == 25
    )


def test_there_are_never_more_folds_than_rows_and_never_fewer_than_two() -> None:
    assert [len(part) for part in folds(classes(2, 1), 5, seed=0)] == [1, 1, 1]
    for dataset, count in ((classes(1), 5), (classes(5, 5), 1)):
        with pytest.raises(ValueError, match="two folds"):
            folds(dataset, count, seed=0)


def test_regression_is_stratified_by_value() -> None:
    drawn = shots(values(200), 20, seed=0)
    tenths = Counter(int(float(row.label) * 7) // 20 for row in drawn.train)
    assert tenths == dict.fromkeys(range(10), 2)
    assert (drawn.low, drawn.high) == (0.0, 199 / 7)
    held = holdout(values(200), seed=0)
    assert Counter(int(float(row.label) * 7) // 20 for row in held.validation) == dict.fromkeys(range(10), 5)
    assert len(folds(values(9), 3, seed=0)) == 3


def test_a_draw_is_the_same_for_ever() -> None:
    rows = list(classes(10, 10).train)
    random.Random(1).shuffle(rows)
    drawn = shots(replace(classes(10, 10), train=tuple(rows)), 4, seed=0)
    assert [row.text_a for row in drawn.train] == ["class 0 row 2", "class 0 row 7", "class 1 row 3", "class 1 row 7"]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=5), st.integers(0, 5))
def test_any_beginning_of_the_fair_order_is_a_stratified_sample(sizes: list[int], seed: int) -> None:
    dataset = classes(*sizes)
    order = fair_order(dataset, seed)
    assert sorted(order) == list(range(sum(sizes)))
    for end in range(1, len(order) + 1):
        counted = Counter(dataset.train[index].label for index in order[:end])
        for label, size in enumerate(sizes):
            assert abs(counted[label] - end * size / sum(sizes)) <= len(sizes) / 2 + 0.5


def test_the_fair_order_of_a_regression_begins_with_low_and_high_values() -> None:
    dataset = values(80)
    begun = [float(dataset.train[index].label) for index in fair_order(dataset, 0)[:10]]
    assert min(begun) < 80 / 7 / 10 < 9 * 80 / 7 / 10 < max(begun)


def test_the_fair_order_follows_the_texts_and_not_the_names_of_the_labels() -> None:
    dataset = classes(9, 5, 3)
    rows = [dataset.train[index].text_a for index in fair_order(dataset, 1)]
    names = ("zebra", "apple", "mule")
    renamed = [replace(row, label=names[int(row.label)]) for row in dataset.train]
    random.Random(3).shuffle(renamed)
    other = Dataset("classification", names, tuple(renamed))
    assert [renamed[index].text_a for index in fair_order(other, 1)] == rows
    assert [dataset.train[index].text_a for index in fair_order(dataset, 2)] != rows
