"""Compare methods on the same rows, as a document and as a plot of score against bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

from onboard.contract.methods import MethodResult, MethodResults
from onboard.domain.counting import size_text
from onboard.domain.report import LOWER_IS_BETTER
from onboard.report.charts import Scale
from onboard.report.reading import mapping, number, text, within
from onboard.report.sentences import deciding_metric, fair_split, metric_name, metric_text, value_text

_WIDTH, _HEIGHT = 640, 360  # pixels of the picture
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 24, 48  # margins: axes left and below, names to the right of a point
_LETTERS: Final = "12px ui-sans-serif, system-ui, sans-serif"
_LINES_APART: Final = 14  # pixels between names


def method_result(method: str, job: Mapping[str, Any], version: Mapping[str, Any] | None) -> MethodResult:
    """Return the result of a method.

    Args:
        job: the document of its job, which has ended.
        version: the document of the published version, if any.
    """
    split, metric = fair_split(job), deciding_metric(job)
    score = mapping(within(job, "metrics", split, metric)) if split and metric else None
    seconds = [taken for value in mapping(job.get("seconds")).values() if (taken := number(value)) is not None]
    trained = number(within(job, "training", "trained"))
    memory = number(job.get("memory_bytes"))
    published = mapping(version)
    return MethodResult(
        method=method,
        state=text(job.get("state")),
        job=text(job.get("job")),
        version=f"{text(job.get('task'))}@v{job['version']}" if published else None,
        score=dict(score) if score else None,
        weak=bool(published["weak"]) if published else None,
        stored_bytes=published.get("stored_bytes"),
        trained=None if trained is None else int(trained),
        seconds=round(sum(seconds), 1) if seconds else None,
        memory_bytes=None if memory is None else int(memory),
        error=text(within(job, "error", "message")) or None,
    )


class MethodsCompared(MethodResults):
    """The results of methods as a table and as a plot."""

    @classmethod
    def of_jobs(cls, task: str, jobs: Sequence[Mapping[str, Any]], results: Sequence[MethodResult]) -> MethodsCompared:
        """Create from jobs; metric and split are those of the first job with a measurement."""
        measured = next((job for job in jobs if fair_split(job)), {})
        metric, split = deciding_metric(measured) or "", fair_split(measured) or ""
        return cls(task=task, metric=metric, split=split, results=tuple(results))

    @property
    def by_score(self) -> list[MethodResult]:
        """Return the results, best first; those without a score last."""
        sign = -1.0 if self.metric in LOWER_IS_BETTER else 1.0
        return sorted(
            self.results, key=lambda result: -sign * float(result.score["value"]) if result.score else math.inf
        )

    def rows(self) -> list[tuple[str, ...]]:
        """Return method, score with interval, bytes, parameters, seconds, memory, version or reason: best first."""
        return [
            (
                f"{result.method}{' (weak)' if result.weak else ''}",
                metric_text(self.metric, result.score) if result.score else "–",
                _count(result.stored_bytes), _count(result.trained),
                "–" if result.seconds is None else f"{result.seconds:.0f}",
                "–" if result.memory_bytes is None else size_text(result.memory_bytes),
                result.version or result.error or result.state,
            )
            for result in self.by_score
        ]  # fmt: skip

    def heads(self) -> tuple[str, ...]:
        """Return the column headings of `rows`."""
        measured = f"{metric_name(self.metric)}, {self.split}" if self.metric else "score"
        return "method", measured, "bytes", "trained", "seconds", "memory", "version"

    def plot(self) -> str:
        """Return an SVG plot: score with its interval against the bytes of a task, on a logarithmic axis."""
        shown = [result for result in self.by_score if result.score and result.stored_bytes]
        ends = [end for result in shown for end in _ends(result)] or [0.0, 1.0]
        sizes = [math.log10(result.stored_bytes or 1) for result in shown] or [0.0, 1.0]
        plot = _Plot(Scale(math.floor(min(sizes)), math.ceil(max(sizes) + 1e-9)), Scale.around(ends))
        return plot.drawn(self, shown)


@dataclass(frozen=True)
class _Plot:
    """Scales of the plot: powers of ten of bytes, and the score."""

    bytes: Scale
    score: Scale

    def x(self, power: float) -> float:
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * self.bytes.at(power) / 100, 1)

    def y(self, value: float) -> float:
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * self.score.at(value) / 100, 1)

    def drawn(self, compared: MethodsCompared, shown: Sequence[MethodResult]) -> str:
        title = f"{metric_name(compared.metric)} against bytes a task"
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            f'style="font: {_LETTERS}; background: #fff; color: #1c1c1c">',
            f"<title>{escape(title)}</title>",
            *self._axes(compared.metric),
            *self._points(shown),
            f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 10}" text-anchor="middle">bytes a task</text>',
            "</svg>",
        ]
        return "\n".join(parts) + "\n"

    def _axes(self, metric: str) -> list[str]:
        bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
        powers = range(int(self.bytes.low), int(self.bytes.high) + 1)
        lines = [
            f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#888"/>',
            *(
                f'<text x="{self.x(at)}" y="{bottom + 18}" text-anchor="middle">{size_text(10**at)}</text>'
                for at in powers
            ),
        ]
        for tick in self.score.ticks():
            y, shown = self.y(tick), escape(value_text(metric, tick))
            lines.append(f'<path d="M{_LEFT} {y}H{right}" stroke="#e4e4e4"/>')
            lines.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{shown}</text>')
        return lines

    def _points(self, shown: Sequence[MethodResult]) -> list[str]:
        lines, free = [], float(_TOP)
        for result in sorted(shown, key=lambda result: self.y(_value(result))):
            x, y = self.x(math.log10(result.stored_bytes or 1)), self.y(_value(result))
            low, high = (self.y(end) for end in _ends(result))
            free = max(free, y + 4)
            lines.append(f'<path d="M{x} {low}V{high}" stroke="#9ab" stroke-width="2"/>')
            lines.append(f'<circle cx="{x}" cy="{y}" r="4" fill="#2563a8"/>')
            lines.append(f'<path d="M{x} {y}L{_WIDTH - _RIGHT + 8} {free - 4}" stroke="#ddd"/>')
            lines.append(f'<text x="{_WIDTH - _RIGHT + 12}" y="{free}">{escape(result.method)}</text>')
            free += _LINES_APART
        return lines


def _value(result: MethodResult) -> float:
    return float(mapping(result.score).get("value") or 0.0)


def _ends(result: MethodResult) -> tuple[float, float]:
    score = mapping(result.score)
    low, high = number(score.get("low")), number(score.get("high"))
    return (_value(result), _value(result)) if low is None or high is None else (low, high)


def _count(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"
