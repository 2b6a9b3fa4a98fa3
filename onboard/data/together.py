"""Group rows that are connected by their texts: learning one of them reveals something about the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from onboard.data.hashes import normalised, text_hash
from onboard.domain.dataset import Example

_BY_ONE_TEXT: Final = 0


def hanging_together(rows: Sequence[Example], order: Iterable[int], most: float) -> list[list[int]]:
    """Return the rows in groups that share no text, ignoring case and whitespace.

    If more than `most` rows are connected, only those with the same whole text (or both texts of a pair) form a group.

    Args:
        order: indices of the rows; groups are in the order of their first rows.
        most: maximum size of a group that shares only one text, or is connected by a chain of such rows.
    """
    first = _sharing_a_text(rows)
    size = Counter(first)
    groups: dict[tuple[int, int], list[int]] = {}
    for index in order:
        whole = _BY_ONE_TEXT if size[first[index]] <= most else _whole_text(rows[index])
        groups.setdefault((first[index], whole), []).append(index)
    return list(groups.values())


def of_one_text(rows: Sequence[Example], group: Iterable[int]) -> list[list[int]]:
    """Return the indices in groups with the same whole text (or both texts of a pair), ignoring case and whitespace."""
    groups: dict[int, list[int]] = {}
    for index in group:
        groups.setdefault(_whole_text(rows[index]), []).append(index)
    return list(groups.values())


def _whole_text(row: Example) -> int:
    return text_hash(row.text_a, row.text_b)


def _sharing_a_text(rows: Sequence[Example]) -> list[int]:
    """Return for each row the first one that it is connected with, by a shared text or a chain of such rows."""
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
