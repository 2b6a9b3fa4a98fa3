"""Rows that are the same but for case and blanks are never parted, nor are rows that share a text without need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onboard.data.hashes import normalised, row_hashes
from onboard.data.splits import by_stratum, folds, held_out_of, holdout
from onboard.domain.dataset import Dataset, Example, Label, example_key
from onboard.train.crossvalidation import part_rows

WAYS = (str, str.upper, lambda text: text.replace(" ", "  "), str.title)


def dataset_of(rows: Sequence[Example]) -> Dataset:
    return Dataset("classification", tuple(sorted({row.label for row in rows})), tuple(rows))


def hub(count: int) -> list[Example]:
    return [Example("The one passage", f"question {number}", number % 2) for number in range(count)]


def variants(rows: Sequence[Example]) -> list[Example]:
    """The rows and the same ones in capital letters, their second texts alone where they are pairs."""
    return [
        *rows,
        *(
            replace(row, text_a=row.text_a.upper()) if row.text_b is None else replace(row, text_b=row.text_b.upper())
            for row in rows
        ),
    ]


def alone(count: int) -> list[Example]:
    return [Example(f"premise {number}", f"claim {number}", number // 2 % 2) for number in range(count)]


def parted(dataset: Dataset, seed: int) -> list[tuple[Example, ...]]:
    return [tuple(dataset.train[index] for index in part) for part in folds(dataset, 4, seed)]


def on_two_sides(sides: Sequence[Sequence[Example]]) -> set[int]:
    """Hashes of the normalised rows that more than one of the sides has."""
    times = Counter(hashed for side in sides for hashed in set(row_hashes(side)))
    return {hashed for hashed, count in times.items() if count > 1}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([*variants(hub(30)), *variants(alone(10))], 20),
        ([*hub(22), *variants(alone(29))], 20),
        (variants([Example(f"text {number}", None, number % 2) for number in range(35)]), 18),
    ],
    ids=["a passage of most rows", "a passage beside pairs", "single texts"],
)
def test_rows_that_are_the_same_but_for_case_and_blanks_are_never_parted(rows, expected) -> None:
    dataset = dataset_of(rows)
    for seed in range(10):
        held = holdout(dataset, seed)
        assert not on_two_sides([held.train, held.validation])
        assert len(held.validation) == expected
        assert not on_two_sides(parted(dataset, seed))


def test_only_those_that_are_too_many_lose_the_text_that_they_share() -> None:
    others = [Example(f"premise {number // 4}", f"claim {number}", number % 2) for number in range(40)]
    for seed in range(5):
        sides = holdout(dataset_of([*hub(40), *others]), seed)
        assert all(any(row in hub(40) for row in side) for side in (sides.train, sides.validation))
        premises = [{row.text_a for row in side} - {"The one passage"} for side in (sides.train, sides.validation)]
        assert premises[0].isdisjoint(premises[1])
        assert len(sides.validation) == 20
        premises = [{row.text_a for row in part} - {"The one passage"} for part in parted(sides, seed)]
        assert sum(map(len, premises)) == len(set().union(*premises))


def test_fewer_rows_are_held_out_where_no_group_fits_any_more() -> None:
    rows = [Example(f"premise {number // 10}", f"claim {number}", number % 2) for number in range(100)]
    held = holdout(dataset_of(rows), 0)
    assert len(held.validation) == 20
    assert {row.text_a for row in held.train}.isdisjoint(row.text_a for row in held.validation)


def test_groups_of_one_label_are_held_out_though_none_fits_its_share() -> None:
    rows = [Example(f"text {number}", None, number // 2) for number in range(40)]
    held = holdout(dataset_of(variants(rows)), 0)  # 20 labels of two times two rows: one row each would be a quarter
    assert len(held.validation) == 20
    assert set(Counter(row.label for row in held.validation).values()) == {2}


def test_a_text_that_all_rows_of_a_label_share_keeps_none_of_them_from_being_held_out() -> None:
    rows = [Example(f"passage {number // 10}", f"claim {number}", number // 10) for number in range(100)]
    held = holdout(dataset_of(rows), 0)
    assert sorted(Counter(row.label for row in held.validation).values()) == [2] * 5 + [3] * 5


def test_what_labels_of_one_row_cannot_give_the_others_do() -> None:
    rows = [Example(f"row {number}", None, max(0, number - 24)) for number in range(65)]
    held = holdout(dataset_of(rows), 0)
    assert Counter(row.label for row in held.validation) == {0: 16}
    sizes = {0: 100, 1: 10} | dict.fromkeys(range(2, 202), 1)
    rows = [Example(f"{label} row {number}", None, label) for label, size in sizes.items() for number in range(size)]
    held = holdout(dataset_of(rows), 0)
    assert Counter(row.label for row in held.validation) == {0: 71, 1: 7}


def test_where_all_rows_have_one_text_there_is_one_fold_and_no_cross_validation() -> None:
    blanks = [Example("the" + " " * (number + 1) + "text", None, number % 2) for number in range(12)]
    dataset = dataset_of(blanks)
    assert folds(dataset, 4, 0) == (tuple(range(12)),)
    assert part_rows(dataset, 0) == []
    values = replace(dataset, kind="regression", labels=(), low=0.0, high=1.0)
    assert part_rows(values, 0) == []
    two = replace(dataset, train=(*blanks, *(replace(row, text_a=f"other{row.text_a}") for row in blanks)))
    assert [len(part) for part in folds(two, 4, 0)] == [12, 12]
    both = part_rows(two, 0, (0.5,))
    assert [len(fold.held) for fold in both] == [12, 12]
    assert all(np.isin(fold.shares[0.5], fold.kept).all() and len(fold.shares[0.5]) == 6 for fold in both)


@st.composite
def datasets(draw: st.DrawFn, least: int, most: int) -> Dataset:
    """Rows of few texts, written in several ways; few enough first texts for some to be what most rows are about."""
    firsts, seconds = draw(st.sampled_from([2, 20, 60, 200])), draw(st.sampled_from([0, 30, 200]))
    labels, paired = draw(st.integers(2, 12)), seconds > 0
    count, random = draw(st.integers(least, most)), Random(draw(st.integers(0, 2**32)))
    rows = {}
    for number in range(count):
        first, second = random.randrange(firsts), random.randrange(seconds or 1)
        way = random.choice(WAYS)
        text = way(f"passage no {first} ") + " " * number  # no row stands twice
        rows[text] = Example(text, way(f"claim no {second}") if paired else None, random.randrange(labels))
    return dataset_of(list(rows.values()))


def components(rows: Sequence[Example]) -> list[list[Example]]:
    """Rows that hang together by shared texts, found by merging sets until none meet."""
    groups: list[tuple[set[str], list[Example]]] = []
    for row in rows:
        texts, members = {normalised(text) for text in (row.text_a, row.text_b) if text}, [row]
        for other in [group for group in groups if group[0] & texts]:
            groups.remove(other)
            texts, members = texts | other[0], members + other[1]
        groups.append((texts, members))
    return [members for _, members in groups]


def keys(rows: Sequence[Example]) -> list[str]:
    return sorted(map(example_key, rows))


@settings(max_examples=150, deadline=None)
@given(datasets(65, 130), st.integers(0, 3), st.randoms(use_true_random=False))
def test_hold_outs_part_no_row_lose_none_and_take_what_fits(dataset: Dataset, seed: int, random: Random) -> None:
    held = holdout(dataset, seed)
    assert not on_two_sides([held.train, held.validation])
    assert keys([*held.train, *held.validation]) == keys(dataset.train)
    shuffled = replace(dataset, train=tuple(random.sample(dataset.train, len(dataset.train))))
    assert holdout(shuffled, seed).validation == held.validation

    size, trained = (Counter(row.label for row in rows) for rows in (dataset.train, held.train))
    count = held_out_of(len(dataset.train))
    quota = min(count, sum(rows - 1 for rows in size.values()))
    room = quota - len(held.validation)
    assert room >= 0
    assert set(trained) == set(size)
    for group in components(dataset.train):
        whole = len(group) <= count and not _all_of_a_label(group, size)
        for part in [group] if whole else _by_text(group):
            trains = [row in set(held.train) for row in part]
            assert all(trains) or not any(trains)
            assert not any(trains) or len(part) > room or _all_of_a_label(part, trained)


def _all_of_a_label(rows: Sequence[Example], of: Counter[Label]) -> bool:
    return any(count >= of[label] for label, count in Counter(row.label for row in rows).items())


def _by_text(rows: Sequence[Example]) -> list[list[Example]]:
    by_text: dict[int, list[Example]] = {}
    for row, hashed in zip(rows, row_hashes(rows), strict=True):
        by_text.setdefault(hashed, []).append(row)
    return list(by_text.values())


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=60), st.integers(0, 3))
def test_where_no_text_stands_twice_the_quota_is_reached(sizes: list[int], seed: int) -> None:
    rows = [Example(f"{label} row {number}", None, label) for label, size in enumerate(sizes) for number in range(size)]
    held = holdout(dataset_of(rows), seed)
    assert len(held.validation) == min(held_out_of(len(rows)), len(rows) - len(sizes))


@settings(max_examples=150, deadline=None)
@given(datasets(8, 64), st.integers(0, 3), st.integers(2, 6), st.randoms(use_true_random=False))
def test_folds_part_no_row_and_lose_none(dataset: Dataset, seed: int, count: int, random: Random) -> None:
    parts = folds(dataset, count, seed)
    assert all(parts)
    assert sorted(index for part in parts for index in part) == list(range(len(dataset.train)))
    sides = [[dataset.train[index] for index in part] for part in parts]
    assert not on_two_sides(sides)
    for group in components(dataset.train):
        if len(group) <= len(dataset.train) / count:
            assert sum(not set(group).isdisjoint(side) for side in sides) == 1

    shuffled = replace(dataset, train=tuple(random.sample(dataset.train, len(dataset.train))))
    others = [[shuffled.train[index] for index in part] for part in folds(shuffled, count, seed)]
    assert [keys(side) for side in others] == [keys(side) for side in sides]
    assert [shuffled.train[index] for index in by_stratum(shuffled, seed)] == [
        dataset.train[index] for index in by_stratum(dataset, seed)
    ]
