"""Labelled rows that a base of a few words can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

OPINIONS = ("good", "great", "fine", "happy"), ("bad", "awful", "poor", "sad")
THINGS = ("film", "plot", "the film", "the plot", "a film and a plot", "film and plot", "this film", "a plot")


def opinions(count: int, labels: Sequence[Any] = ("yes", "no"), *, start: int = 0) -> list[dict[str, Any]]:
    """Rows without doubles, alternately for and against."""
    rows = []
    for number in range(start, start + count):
        side, index = number % 2, number // 2
        word, thing = OPINIONS[side][index % 4], THINGS[index // 4 % 8]
        text = f"{thing} was {word}" + " not same" * (index // 32)
        rows.append({"text": text, "label": labels[side]})
    return rows
