"""Few-shot draws, hold-outs and folds: stratified, seeded, and independent of the order of the file.

Rows are ordered by a keyed hash of their content, so a draw depends on the seed and the rows alone, the draw of 16 is
part of the draw of 32, and one row more in the file changes little.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from onboard.data.hashes import normalised
from onboard.data.limits import HOLDOUT_FREE_ROWS
from onboard.domain.dataset import Dataset, Example, example_key, in_canonical_rows, label_key
from onboard.errors import InputError

HOLDOUT_SHARE: Final = 0.25
HOLDOUT_MOST_ROWS: Final = 512
_VALUE_STRATA: Final = 10  # of a regression: tenths of the rows by value
_STRATUM_LEAST_ROWS: Final = 4

Strata = list[list[int]]


def shots(dataset: Dataset, rows: int, seed: int) -> Dataset:
    """The dataset with so many training rows in all (or all there are), classes as balanced as the data allow.

    Raises:
        InputError: `rows` is below one.
    """
    if rows < 1:
        raise InputError(f"--shots {rows} is not a number of rows.", "Ask for at least one row per label.", shots=rows)
    if rows >= len(dataset.train):
        return dataset
    strata = _strata(dataset, seed)
    quotas = _even([len(stratum) for stratum in strata], rows)
    chosen = [index for stratum, quota in zip(strata, quotas, strict=True) for index in stratum[:quota]]
    return replace(dataset, train=in_canonical_rows([dataset.train[index] for index in chosen]))


def held_out_of(count: int) -> int:
    """How many of so many training rows are held out where a dataset has no validation split of its own."""
    return 0 if count <= HOLDOUT_FREE_ROWS else min(HOLDOUT_MOST_ROWS, round(HOLDOUT_SHARE * count))


def is_folded(dataset: Dataset) -> bool:
    """Whether a job trains on all rows and asks folds how good it is: nothing is held out, or could be learned then."""
    return not dataset.validation and not held_out_of(len(dataset.train)) and not dataset.one_row_each


def holdout(dataset: Dataset, seed: int) -> Dataset:
    """The dataset with a validation split: its own, or a quarter of the training rows, 512 at most.

    At least one row of every class is held out, but a class of one row keeps it for training. Up to 64 training rows
    nothing is held out, and validation stays empty.
    Rows that share a text are all held out or all trained on, as in `folds`; where such groups leave room that none of
    them fits into, single rows fill it.
    """
    count = held_out_of(len(dataset.train))
    if dataset.validation or not count:
        return dataset
    strata = _strata(dataset, seed)
    of = _number_of(strata)
    left = Counter(dict(enumerate(_proportional([len(stratum) for stratum in strata], count))))
    held = set[int]()

    def hold(group: Sequence[int]) -> None:
        wanted = Counter(of[index] for index in group)
        if held.isdisjoint(group) and wanted <= left:
            held.update(group)
            left.subtract(wanted)

    groups = _hanging_together(dataset, strata, most=count)
    for rows in chain(groups, ([index] for group in groups for index in group)):
        hold(rows)
        if not left.total():
            break
    return replace(
        dataset,
        train=in_canonical_rows([row for index, row in enumerate(dataset.train) if index not in held]),
        validation=in_canonical_rows([dataset.train[index] for index in held]),
    )


def folds(dataset: Dataset, count: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Indices into `dataset.train` of each fold's held-out rows; the folds are stratified and part the rows.

    Rows that share a text stand in one fold: who has learned one of them knows something of the other, and would be
    judged too well by it. Where more rows than make a fold hang together by their texts, those are what the task is
    about (the entries of a list of questions, say), and all rows are parted one by one.
    There are never more folds than rows, so no fold is empty.

    Raises:
        ValueError: fewer than two folds, or fewer than two rows to part.
    """
    rows = dataset.train
    count = min(count, len(rows))
    if count < 2:
        raise ValueError("cross-validation needs two folds and two rows at least")
    strata = _strata(dataset, seed)
    of = _number_of(strata)
    found: list[list[int]] = [[] for _ in range(count)]
    held = [Counter[int]() for _ in range(count)]  # rows of each stratum by fold
    for group in sorted(_hanging_together(dataset, strata, most=len(rows) / count), key=len, reverse=True):
        wanted = [of[index] for index in group]
        fold = _least_crowded(held, wanted)
        found[fold] += group
        held[fold].update(wanted)
    return tuple(tuple(sorted(fold)) for fold in found)


def _least_crowded(held: Sequence[Counter[int]], wanted: Sequence[int]) -> int:
    """The fold with the fewest rows of these strata, of several the smallest, of these the first."""
    return min(range(len(held)), key=lambda fold: (sum(held[fold][each] for each in wanted), held[fold].total()))


def _hanging_together(dataset: Dataset, strata: Strata, most: float) -> list[list[int]]:
    """The training rows in groups that share no text, in the order of the strata; one by one where a group has more
    than `most` rows.
    """
    together = _sharing_a_text(dataset.train)
    if max(Counter(together).values()) > most:
        together = list(range(len(together)))
    groups: dict[int, list[int]] = {}
    for index in (index for stratum in strata for index in stratum):
        groups.setdefault(together[index], []).append(index)
    return list(groups.values())


def _sharing_a_text(rows: Sequence[Example]) -> list[int]:
    """Of each row the first one that it hangs together with, by a text that both hold or by a chain of such rows."""
    first = list(range(len(rows)))

    def root(index: int) -> int:
        while first[index] != index:
            index = first[index]
        return index

    seen: dict[str, int] = {}
    for index, row in enumerate(rows):
        for text in (row.text_a, row.text_b):
            if text:
                other = root(seen.setdefault(normalised(text), index))
                low, high = sorted((other, root(index)))
                first[high] = low
    return [root(index) for index in range(len(rows))]


def fair_order(dataset: Dataset, seed: int) -> tuple[int, ...]:
    """Indices of all training rows in an order any beginning of which is a stratified sample of them.

    It follows the texts and which rows share a label, not what the labels are called.
    """
    ranks = [_rank(seed, f"{row.text_a}\n{row.text_b}") for row in dataset.train]
    strata = [sorted(stratum, key=lambda index: ranks[index]) for stratum in _strata(dataset, seed)]
    placed = [((place + 0.5) / len(each), ranks[index], index) for each in strata for place, index in enumerate(each)]
    return tuple(index for _, _, index in sorted(placed))


def _strata(dataset: Dataset, seed: int) -> Strata:
    """Indices into the training rows, by class (or tenth of the values), in the seed's order."""
    ranks = [_rank(seed, example_key(example)) for example in dataset.train]
    if dataset.kind == "regression":
        strata = _by_value(dataset.train, ranks)
    else:
        by_label: dict[str, list[int]] = {}
        for index, example in enumerate(dataset.train):
            by_label.setdefault(label_key(example.label), []).append(index)
        strata = [by_label[key] for key in sorted(by_label, key=lambda key: _rank(seed, key))]
    return [sorted(stratum, key=lambda index: ranks[index]) for stratum in strata]


def _number_of(strata: Strata) -> dict[int, int]:
    """Of each row the number of its stratum."""
    return {index: number for number, stratum in enumerate(strata) for index in stratum}


def _by_value(examples: Sequence[Example], ranks: Sequence[bytes]) -> Strata:
    order = sorted(range(len(examples)), key=lambda index: (float(examples[index].label), ranks[index]))
    parts = max(1, min(_VALUE_STRATA, len(order) // _STRATUM_LEAST_ROWS))
    return [order[part * len(order) // parts : (part + 1) * len(order) // parts] for part in range(parts)]


def _rank(seed: int, key: str) -> bytes:
    return hashlib.blake2b(f"{seed}\n{key}".encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _even(sizes: Sequence[int], total: int) -> list[int]:
    """As equal quotas as the sizes allow, summing to `total`; what is left over goes to the first strata."""
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
    """Quotas in proportion to the sizes, summing to `total` if that can be: one at least, never all of a stratum."""
    exact = [size * total / sum(sizes) for size in sizes]
    quotas = [min(max(int(share), 1), size - 1) for share, size in zip(exact, sizes, strict=True)]
    while sum(quotas) > total:  # so many classes that one row of each is too much
        quotas[max(range(len(quotas)), key=lambda index: quotas[index])] -= 1
    by_rest = sorted(range(len(sizes)), key=lambda index: quotas[index] - exact[index])
    for index in by_rest:
        if sum(quotas) < total and quotas[index] < sizes[index] - 1:
            quotas[index] += 1
    return quotas
