"""Which training rows of a stored dataset were held out, as places that do not depend on today's rule of splits.

A snapshot never changes, nor does the order of its rows, so a row is known by its place in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from onboard.domain.dataset import Dataset, example_key


def held_out_places(stored: Dataset, split: Dataset) -> tuple[int, ...]:
    """Places in `stored.train`, ascending, of the rows that are no training rows of `split` any more.

    Args:
        stored: the dataset as its snapshot has it.
        split: the same after the hold-out.
    """
    trained = set(map(example_key, split.train))
    return tuple(place for place, row in enumerate(stored.train) if example_key(row) not in trained)


def split_as(stored: Dataset, places: Iterable[int]) -> Dataset:
    """The dataset with the training rows at these places as rows for validation, beside any that it has."""
    held = frozenset(places)
    return replace(
        stored,
        train=tuple(row for place, row in enumerate(stored.train) if place not in held),
        validation=(*stored.validation, *(row for place, row in enumerate(stored.train) if place in held)),
    )
