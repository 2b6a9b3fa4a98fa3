"""A figure over a number on a logarithmic scale, a line a method with its intervals, as our own SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from bench.harness.figures import Figure
from bench.harness.plot import drawing
from onboard.report.charts import Scale

WIDTH, HEIGHT = 760, 400
LEFT, RIGHT, TOP, BOTTOM = 50, 230, 20, 45
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")  # Okabe, Ito


@dataclass(frozen=True)
class Line:
    """One method.

    Args:
        title: in the legend.
        points: its figure by that number.
    """

    title: str
    points: Mapping[int, Figure]


def svg(title: str, lines: Sequence[Line], across: str = "labelled rows") -> str:
    """The chart; lines without points are left out.

    Args:
        title: for those who cannot see it.
        lines: of the methods.
        across: what the number is.
    """
    shown = [line for line in lines if line.points]
    figures = [figure for line in shown for figure in line.points.values()]
    counts = sorted({count for line in shown for count in line.points})
    lows, highs = [figure.low for figure in figures], [figure.high for figure in figures]
    y = Scale(min(lows, default=0.0), max(highs, default=100.0))
    x = Scale(math.log(min(counts, default=1)), math.log(max(counts, default=2)))
    parts = [
        *(_y_tick(_down(y, tick), f"{tick:g}") for tick in y.ticks()),
        *(_text(_across(x, count), HEIGHT - BOTTOM + 20, f"{count:,}", "middle") for count in counts),
        _text(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 8, across, "middle"),
        *(part for index, line in enumerate(shown) for part in _drawn(line, index, len(shown), x, y)),
    ]
    return drawing(title, (WIDTH, HEIGHT), 12, parts)


def _drawn(line: Line, index: int, count: int, x: Scale, y: Scale) -> list[str]:
    """Points side by side where n is the same, so that intervals can be distinguished."""
    colour, beside = COLOURS[index % len(COLOURS)], 5.0 * (index - (count - 1) / 2)
    at = [(_across(x, shots) + beside, figure) for shots, figure in sorted(line.points.items())]
    path = " ".join(f"{across:.1f},{_down(y, figure.value):.1f}" for across, figure in at)
    parts = [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>']
    for across, figure in at:
        top, bottom = _down(y, figure.high), _down(y, figure.low)
        parts.append(f'<path d="M{across:.1f} {top:.1f}V{bottom:.1f}" stroke="{colour}" stroke-opacity="0.5"/>')
        parts.append(f'<circle cx="{across:.1f}" cy="{_down(y, figure.value):.1f}" r="3" fill="{colour}"/>')
    below = TOP + 10 + 20 * index
    parts.append(f'<rect x="{WIDTH - RIGHT + 30}" y="{below - 9}" width="10" height="10" fill="{colour}"/>')
    return [*parts, _text(WIDTH - RIGHT + 46, below, line.title)]


def _y_tick(down: float, label: str) -> str:
    rule = f'<path d="M{LEFT} {down:.1f}H{WIDTH - RIGHT + 15}" stroke="#ddd"/>'
    return rule + _text(LEFT - 22, down + 4, label, "end")


def _text(across: float, down: float, label: str, anchor: str = "start") -> str:
    return f'<text x="{across:.1f}" y="{down:.1f}" text-anchor="{anchor}" fill="#333">{escape(label)}</text>'


def _across(x: Scale, count: int) -> float:
    return LEFT + x.at(math.log(count)) / 100 * (WIDTH - LEFT - RIGHT)


def _down(y: Scale, value: float) -> float:
    return TOP + (100 - y.at(value)) / 100 * (HEIGHT - TOP - BOTTOM)
