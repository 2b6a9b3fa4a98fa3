"""Geometry of the charts.

Positions are per cent of the plot's width, so that an SVG without a view box fits any screen and its text never
shrinks. The learning curve is stretched, with its text outside the SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_POINTS = 300
SMOOTHED_FROM = 20  # steps; shorter curves are not smoothed


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale from `low`…`high` to 0…100 per cent; values outside are clipped."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Sequence[float], *, least: float = -math.inf, most: float = math.inf) -> Scale:
        """Return a scale of all values, with margins of a twentieth of their span within `least` and `most`."""
        room = (max(values) - min(values)) * 0.05 or 0.05
        return cls(max(least, min(values) - room), min(most, max(values) + room))

    def at(self, value: float) -> float:
        """Return the position of a value in per cent."""
        span = self.high - self.low
        position = (value - self.low) / span if span > 0 else 0.5
        return round(100 * min(1.0, max(0.0, position)), 3)

    def ticks(self, count: int = 5) -> list[float]:
        """Return about `count` round numbers on the scale."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = span / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough * 0.999), 10 * power)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Track:
    """A row of a chart: a bar or a dot with its interval. Positions in per cent, None if absent."""

    label: str
    shown: str
    at: float | None
    low: float | None = None
    high: float | None = None
    emphasised: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RowChart:
    """Rows on one scale. `origin`: where bars start; None draws dots. `reference`: a line across all rows."""

    title: str
    tracks: list[Track]
    caption: str = ""
    ticks: list[tuple[float, str]] = field(default_factory=list)
    origin: float | None = None
    reference: float | None = None


@dataclass(frozen=True, slots=True)
class StepChart:
    """A line over steps: SVG point lists in a box of 100 × 100, and the labels around it."""

    title: str
    raw: str
    smooth: str
    y_ticks: list[tuple[float, str]]
    x_ticks: list[tuple[float, str]]
    summary: str


def curve(title: str, values: Sequence[float], *, smoothed: bool, every: int = 1) -> StepChart | None:
    """Return the line of a number per step, or per `every` steps, with its moving average if `smoothed`.

    None for fewer than two values.
    """
    if len(values) < 2:
        return None
    low, high = min(values), max(values)
    pad = (high - low) * 0.06 or max(abs(high), 1.0) * 0.1
    scale = Scale(min(max(low - pad, 0.0), low), high + pad)
    width = len(values) // SMOOTHED_FROM if smoothed else 0
    trend = moving_average(values, width)
    return StepChart(
        title=title,
        raw=_points(values, scale),
        smooth=_points(trend, scale) if width else "",
        y_ticks=[(100 - scale.at(tick), f"{tick:g}") for tick in scale.ticks(4)],
        x_ticks=_step_ticks(len(values) * every),
        summary=f"From {trend[0]:.3g} to {trend[-1]:.3g} in {len(values) * every:,} steps"
        f"{' (moving average)' if width else ''}, lowest {low:.3g}, highest {high:.3g}",
    )


def moving_average(values: Sequence[float], width: int) -> list[float]:
    """Return the mean over a centered window of up to 2·width + 1 values, narrower at the ends; the length stays."""
    sums = [0.0]
    for value in values:
        sums.append(sums[-1] + value)
    ends = [(max(0, i - width), min(len(values), i + width + 1)) for i in range(len(values))]
    return [(sums[stop] - sums[start]) / (stop - start) for start, stop in ends]


def _points(values: Sequence[float], scale: Scale) -> str:
    stride = max(1, math.ceil(len(values) / MOST_POINTS))
    points = [(i, values[i]) for i in range(0, len(values), stride)]
    if points[-1][0] != len(values) - 1:
        points.append((len(values) - 1, values[-1]))
    return " ".join(f"{100 * i / (len(values) - 1):.2f},{100 - scale.at(value):.2f}" for i, value in points)


def _step_ticks(steps: int) -> list[tuple[float, str]]:
    scale = Scale(1, steps)
    inner = [tick for tick in scale.ticks(4) if tick >= 1 and tick == int(tick) and 8 < scale.at(tick) < 92]
    return [(scale.at(tick), f"{tick:,.0f}") for tick in (1, *inner, steps)]
