"""The confusion matrix as a heat map, and the most frequent mistakes in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onboard.report.reading import label_name, listing, number, text

MOST_HEATED = 20  # labels; a larger matrix is only described by its mistakes
MOST_MISTAKES = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """Rows of one true label with one predicted label; `share` is of the true label's rows."""

    count: int
    share: float
    right: bool
    title: str


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake: how many rows of `true`, out of `of`, were predicted as `predicted`."""

    true: str
    predicted: str
    count: int
    of: int


@dataclass(frozen=True, slots=True)
class Mistakes:
    """Heat map (labels, cells) if it is small enough, else no cells; and the most frequent mistakes."""

    labels: list[str]
    cells: list[list[Cell]]
    worst: list[Mistake]
    split: str
    upright: bool


def mistakes(confusion: Mapping[str, Any]) -> Mistakes | None:
    """Read the confusion matrix of a document; None if it is missing or not square."""
    labels = [label_name(label) for label in listing(confusion.get("labels"))]
    matrix = [[int(number(count) or 0) for count in listing(row)] for row in listing(confusion.get("matrix"))]
    if not labels or len(matrix) != len(labels) or any(len(row) != len(labels) for row in matrix):
        return None
    of = [sum(row) for row in matrix]
    wrong = [
        Mistake(labels[t], labels[p], count, of[t])
        for t, row in enumerate(matrix)
        for p, count in enumerate(row)
        if t != p and count > 0
    ]
    heated = enumerate(matrix) if len(labels) <= MOST_HEATED else ()
    return Mistakes(
        labels=labels,
        cells=[[_cell(labels, count, of[t], t, p) for p, count in enumerate(row)] for t, row in heated],
        worst=sorted(wrong, key=lambda mistake: -mistake.count)[:MOST_MISTAKES],
        split=text(confusion.get("split")),
        upright=len(labels) > 4 and max(map(len, labels)) > 4,
    )


def _cell(labels: list[str], count: int, of: int, true: int, predicted: int) -> Cell:
    share = count / of if of else 0.0
    title = f"{count} of {of} rows labeled {labels[true]} were answered {labels[predicted]}"
    return Cell(count, round(share, 3), true == predicted, title)
