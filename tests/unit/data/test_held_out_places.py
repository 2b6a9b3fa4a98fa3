"""What was held out is kept as places in the stored dataset, which say it whatever the rule of splits is later."""

from __future__ import annotations

import pytest

from onboard.data.snapshot import load, save
from onboard.data.splits import held_out_places, holdout, split_as
from onboard.domain.dataset import Dataset, Example


def stored(count: int, validation: int = 0, kind: str = "classification") -> Dataset:
    """As a snapshot has it; labels of two types, which are equal to Python."""
    labels = (True, 1) if kind == "classification" else ()
    rows = [
        Example(f"row {number}", None, labels[number % 2] if labels else number / 7)
        for number in range(count + validation)
    ]
    low, high = (None, None) if labels else (0.0, (count - 1) / 7)
    dataset = Dataset(kind, labels, tuple(rows[:count]), tuple(rows[count:]), low=low, high=high)  # type: ignore[arg-type]
    return load(save(dataset))


@pytest.mark.parametrize(
    "dataset", [stored(100), stored(64), stored(100, 20), stored(3000), stored(90, 0, "regression")]
)
@pytest.mark.parametrize("seed", [0, 7])
def test_places_give_the_split_again(dataset: Dataset, seed: int) -> None:
    split = holdout(dataset, seed)
    places = held_out_places(dataset, split)
    assert len(places) == len(dataset.train) - len(split.train)
    assert list(places) == sorted(set(places))
    assert split_as(dataset, places) == split


def test_another_draw_has_other_places() -> None:
    dataset = stored(100)
    assert held_out_places(dataset, holdout(dataset, 0)) != held_out_places(dataset, holdout(dataset, 1))
