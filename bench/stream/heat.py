"""R[T,i] as a heat map: a panel a method, accuracies in the cells, coloured by what changed since it was learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

import numpy as np

from bench.harness.plot import drawing

CELL, LEFT, TOP, GAP, COLUMNS = 26, 96, 116, 24, 2
FULL: Final = 10.0  # points of change that have the full colour
WORSE, BETTER, SAME = (213, 94, 0), (0, 114, 178), (245, 245, 245)  # vermilion and blue of Okabe and Ito


def svg(title: str, tasks: Sequence[str], panels: Mapping[str, np.ndarray]) -> str:
    """The map.

    Args:
        title: for those who cannot see it.
        tasks: names in the order of the stream (T).
        panels: accuracies in per cent (t, T) by what they are called; NaN where a task was not learned yet.
    """
    width, height = LEFT + CELL * len(tasks), TOP + CELL * len(tasks)
    rows = -(-len(panels) // COLUMNS)
    whole = (COLUMNS * (width + GAP) + GAP, rows * (height + GAP) + GAP)
    parts = []
    for number, (name, accuracies) in enumerate(panels.items()):
        across = GAP + (number % COLUMNS) * (width + GAP)
        down = GAP + (number // COLUMNS) * (height + GAP)
        parts += [f'<g transform="translate({across} {down})">', *_panel(name, tasks, accuracies), "</g>"]
    return drawing(title, whole, 10, parts)


def _panel(name: str, tasks: Sequence[str], accuracies: np.ndarray) -> list[str]:
    parts = [f'<text x="{LEFT}" y="10" font-size="13" fill="#000">{escape(name)}</text>']
    for place, task in enumerate(tasks):
        middle = LEFT + CELL * place + CELL // 2 + 3
        parts.append(f'<text transform="translate({middle} {TOP - 5}) rotate(-60)" fill="#333">{escape(task)}</text>')
    for after, row in enumerate(accuracies):
        down = TOP + CELL * after
        parts.append(
            f'<text x="{LEFT - 6}" y="{down + 17}" text-anchor="end" fill="#333">after {escape(tasks[after])}</text>'
        )
        for place in range(after + 1):
            across, change = LEFT + CELL * place, row[place] - accuracies[place, place]
            parts.append(
                f'<rect x="{across}" y="{down}" width="{CELL}" height="{CELL}" fill="{colour(change)}" '
                f'stroke="{"#333" if place == after else "#fff"}"/>'
                f'<text x="{across + CELL / 2:g}" y="{down + 17}" text-anchor="middle" fill="#000">{row[place]:.0f}'
                "</text>"
            )
    return parts


def colour(change: float) -> str:
    """Of a change in points: none is grey, a loss goes to vermilion, a gain to blue."""
    share = min(1.0, abs(change) / FULL)
    mixed = (
        round(start + share * 0.8 * (end - start))
        for start, end in zip(SAME, WORSE if change < 0 else BETTER, strict=True)
    )
    return "#" + "".join(f"{part:02x}" for part in mixed)
