"""Few-shot draws, hold-outs and folds: stratified, seeded, and independent of the order of the file.

Rows are ordered by a keyed hash of their content. So a draw depends only on the seed and the rows, the draw of 16 is
part of the draw of 32, and one more row changes little. Held-out rows are stored as indices in the snapshot, which
never change, so that they do not depend on the current rule.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from onboard.data.limits import HOLDOUT_FREE_ROWS
from onboard.data.together import hanging_together, of_one_text
from onboard.domain.dataset import Dataset, Example, example_key, in_canonical_rows, label_key
from onboard.domain.label_set import labels_of
from onboard.errors import InputError

HOLDOUT_SHARE: Final = 0.25
HOLDOUT_MOST_ROWS: Final = 512
_VALUE_STRATA: Final = 10  # of a regression: tenths of the rows by value
_STRATUM_LEAST_ROWS: Final = 4

Strata = list[list[int]]


def shots(dataset: Dataset, rows: int, seed: int) -> Dataset:
    """Draw `rows` training rows in total (or all, if there are fewer), with classes as balanced as possible.

    Raises:
        InputError: `rows` is below one.
    """
    if rows < 1:
        raise InputError("shots-not-positive", shots=rows)
    if rows >= len(dataset.train):
        return dataset
    strata = _strata(dataset, seed)
    quotas = _even([len(stratum) for stratum in strata], rows)
    chosen = [index for stratum, quota in zip(strata, quotas, strict=True) for index in stratum[:quota]]
    return replace(dataset, train=in_canonical_rows([dataset.train[index] for index in chosen]))


def held_out_of(count: int) -> int:
    """Return how many of `count` training rows are held out for a dataset without a validation split."""
    return 0 if count <= HOLDOUT_FREE_ROWS else min(HOLDOUT_MOST_ROWS, round(HOLDOUT_SHARE * count))


def is_folded(dataset: Dataset) -> bool:
    """Return whether a job trains on all rows and validates on folds, because no row is, or can be, held out."""
    return not dataset.validation and not held_out_of(len(dataset.train)) and not dataset.one_row_each


def holdout(dataset: Dataset, seed: int) -> Dataset:
    """Return the dataset with a validation split: its own, or a quarter of the training rows, at most 512.

    Classes are held out in proportion, at least one row per class; a class with one row keeps it for training. With up
    to 64 training rows nothing is held out, and validation stays empty. Rows that share a text are held out together,
    as in `folds`, unless that takes too many rows or all of a class; rows with the same whole text stay together even
    then. If no such group fits, fewer rows are held out.
    """
    count = held_out_of(len(dataset.train))
    if dataset.validation or not count:
        return dataset
    held = _held_out(dataset.train, _strata(dataset, seed), count)
    return replace(
        dataset,
        train=in_canonical_rows([row for index, row in enumerate(dataset.train) if index not in held]),
        validation=in_canonical_rows([dataset.train[index] for index in held]),
    )


def held_out_places(stored: Dataset, split: Dataset) -> tuple[int, ...]:
    """Return ascending indices in `stored.train` of the rows that are not training rows of `split`.

    Args:
        stored: the dataset of the snapshot.
        split: the same after the hold-out.
    """
    trained = set(map(example_key, split.train))
    return tuple(place for place, row in enumerate(stored.train) if example_key(row) not in trained)


def split_as(stored: Dataset, places: Iterable[int]) -> Dataset:
    """Return the dataset with the training rows at these indices moved to validation."""
    held = frozenset(places)
    return replace(
        stored,
        train=tuple(row for place, row in enumerate(stored.train) if place not in held),
        validation=(*stored.validation, *(row for place, row in enumerate(stored.train) if place in held)),
    )


def _held_out(rows: Sequence[Example], strata: Strata, count: int) -> set[int]:
    """Return indices of `count` rows, or as many as whole groups allow; one row of every stratum remains."""
    sizes = [len(stratum) for stratum in strata]
    quotas, most = _proportional(sizes, count), [size - 1 for size in sizes]
    groups = hanging_together(rows, chain.from_iterable(strata), most=count)
    drawn = _Drawn(strata, sum(quotas))
    drawn.add(groups, quotas)
    if drawn.room:  # no group fits into the quotas: divide those with all rows of a class
        none = _Drawn(strata, 0)
        parts = (of_one_text(rows, group) if none.beyond(group, most) else [group] for group in groups)
        groups = list(chain.from_iterable(parts))
        drawn.add(groups, quotas)
        drawn.add(sorted(groups, key=lambda group: drawn.beyond(group, quotas)), most)
    return drawn.rows


class _Drawn:
    """Draws rows in whole groups.

    Args:
        strata: indices of all rows.
        room: number of rows that may still be drawn.
    """

    def __init__(self, strata: Strata, room: int) -> None:
        self.rows = set[int]()
        self.room = room
        self._of = _number_of(strata)
        self._counts = [0] * len(strata)

    def beyond(self, group: Iterable[int], limits: Sequence[int]) -> int:
        """Return by how many rows a group would exceed the limits of its strata."""
        more = Counter(self._of[index] for index in group)
        return sum(max(0, self._counts[number] + count - limits[number]) for number, count in more.items())

    def add(self, groups: Iterable[list[int]], limits: Sequence[int]) -> None:
        """Draw groups in order, as far as the limits of the strata and the room allow."""
        for group in groups:
            if not self.room:
                break
            if len(group) <= self.room and self.rows.isdisjoint(group) and not self.beyond(group, limits):
                self.rows.update(group)
                self.room -= len(group)
                for index in group:
                    self._counts[self._of[index]] += 1


def evenly_spaced(count: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced indices of `count` rows, which are sorted by their texts."""
    return [place * count // most for place in range(most)] if count > most else list(range(count))


def folds(dataset: Dataset, count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Return indices into `dataset.train` of each fold's held-out rows; the folds are a stratified partition.

    Rows that share a text are in one fold: whoever has learned one of them knows something about the other and would be
    judged too well. If more rows than a fold are connected by their texts, these are what the task is about (a list of
    questions, say), and they are divided; rows with the same whole text never are. There are at most as many folds as
    such groups, so no fold is empty; if all rows have one text, there is one.

    Raises:
        ValueError: fewer than two folds, or fewer than two rows.
    """
    rows = dataset.train
    count = min(count, len(rows))
    if count < 2:
        raise ValueError("cross-validation needs at least two folds and two rows")
    strata = _strata(dataset, seed)
    of = _number_of(strata)
    groups = hanging_together(rows, chain.from_iterable(strata), most=len(rows) / count)
    count = min(count, len(groups))
    folds: list[list[int]] = [[] for _ in range(count)]
    held = [Counter[int]() for _ in range(count)]  # rows of each stratum by fold
    for group in sorted(groups, key=len, reverse=True):
        members = [of[index] for index in group]
        fold = _least_crowded(held, members)
        folds[fold] += group
        held[fold].update(members)
    return tuple(tuple(sorted(fold)) for fold in folds)


def _least_crowded(held: Sequence[Counter[int]], members: Sequence[int]) -> int:
    """Return the fold with the fewest rows of these strata, then the smallest, then the first."""
    return min(range(len(held)), key=lambda fold: (sum(held[fold][stratum] for stratum in members), held[fold].total()))


def by_stratum(dataset: Dataset, seed: int) -> tuple[int, ...]:
    """Return indices of all training rows by class (or tenth of the values), in the seed's order."""
    return tuple(chain.from_iterable(_strata(dataset, seed)))


def fair_order(dataset: Dataset, seed: int) -> tuple[int, ...]:
    """Return indices of all training rows in an order in which every prefix is a stratified sample.

    It depends on the texts and on which rows share a label, not on the names of labels.
    """
    ranks = [split_rank(seed, f"{row.text_a}\n{row.text_b}") for row in dataset.train]
    strata = [sorted(stratum, key=lambda index: ranks[index]) for stratum in _strata(dataset, seed)]
    placed = [
        ((place + 0.5) / len(stratum), ranks[index], index) for stratum in strata for place, index in enumerate(stratum)
    ]
    return tuple(index for _, _, index in sorted(placed))


def _strata(dataset: Dataset, seed: int) -> Strata:
    """Return indices of the training rows, by class (or rarest label, or tenth of the values), in the seed's order."""
    ranks = [split_rank(seed, example_key(example)) for example in dataset.train]
    if dataset.kind == "regression":
        strata = _by_value(dataset.train, ranks)
    else:
        by_label: dict[str, list[int]] = {}
        for index, stratum in enumerate(_stratum_of_each(dataset)):
            by_label.setdefault(stratum, []).append(index)
        strata = [by_label[key] for key in sorted(by_label, key=lambda key: split_rank(seed, key))]
    return [sorted(stratum, key=lambda index: ranks[index]) for stratum in strata]


def _stratum_of_each(dataset: Dataset) -> list[str]:
    """Return the label of each training row; for several labels the rarest, so that rare labels are spread evenly."""
    sets = [[label_key(label) for label in labels_of(dataset.kind, row.label)] for row in dataset.train]
    counts = Counter(chain.from_iterable(sets))
    return [min(keys, key=lambda key: (counts[key], key), default="") for keys in sets]


def _number_of(strata: Strata) -> dict[int, int]:
    """Return the stratum of each row."""
    return {index: number for number, stratum in enumerate(strata) for index in stratum}


def _by_value(examples: Sequence[Example], ranks: Sequence[bytes]) -> Strata:
    order = sorted(range(len(examples)), key=lambda index: (float(examples[index].label), ranks[index]))
    parts = max(1, min(_VALUE_STRATA, len(order) // _STRATUM_LEAST_ROWS))
    return [order[part * len(order) // parts : (part + 1) * len(order) // parts] for part in range(parts)]


def split_rank(seed: int, key: str) -> bytes:
    """Return a row's rank in the order of splits, from its content and the seed."""
    return hashlib.blake2b(f"{seed}\n{key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _even(sizes: Sequence[int], total: int) -> list[int]:
    """Return quotas as equal as the sizes allow, summing to `total`; the first strata get the remainder."""
    quotas = [0] * len(sizes)
    while (left := total - sum(quotas)) > 0:
        open_strata = [index for index, size in enumerate(sizes) if quotas[index] < size]
        if not open_strata:
            break
        step = max(1, min(left // len(open_strata), min(sizes[index] - quotas[index] for index in open_strata)))
        for index in open_strata[:left]:
            quotas[index] += step
    return quotas


def _proportional(sizes: Sequence[int], total: int) -> list[int]:
    """Return proportional quotas, summing to `total` if possible: at least one, never all of a stratum.

    Rows that single-row strata cannot give come from those that have given the smallest share.
    """
    exact = [size * total / sum(sizes) for size in sizes]
    quotas = [min(max(int(share), 1), size - 1) for share, size in zip(exact, sizes, strict=True)]
    while sum(quotas) > total:  # there are too many classes for one row of each
        quotas[max(range(len(quotas)), key=lambda index: quotas[index])] -= 1
    by_rest = sorted(range(len(sizes)), key=lambda index: quotas[index] - exact[index])
    for index in by_rest:
        if sum(quotas) < total and quotas[index] < sizes[index] - 1:
            quotas[index] += 1
    while sum(quotas) < total and (able := [index for index, size in enumerate(sizes) if quotas[index] < size - 1]):
        quotas[min(able, key=lambda index: quotas[index] / sizes[index])] += 1
    return quotas
