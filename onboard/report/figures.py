"""The charts of a job's document: results with baselines, candidates of the probe, training, times, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onboard.domain.counting import counted
from onboard.domain.job import STEPS_BETWEEN
from onboard.domain.moment import seconds_text
from onboard.domain.report import SHARE_METRICS
from onboard.report.charts import RowChart, Scale, StepChart, Track, curve
from onboard.report.reading import any_label, label_name, mapping, mappings, number, numbers, text, within
from onboard.report.sentences import (
    TRIVIAL_BASELINES,
    baseline_name,
    better,
    interval_text,
    metric_name,
    value_text,
)
from onboard.report.start import candidate_detail, own_loss, shown_candidates

MOST_LABELS = 30
_MOST_LIVE = 4  # curves
CORRELATIONS = frozenset({"mcc", "pearson", "spearman"})


def results_chart(metrics: Mapping[str, Any], baselines: Mapping[str, Any], deciding: str) -> RowChart | None:
    """Chart the deciding metric of the version and its baselines on one split, as bars with intervals."""
    own = mapping(metrics.get(deciding))
    if number(own.get("value")) is None:
        return None
    compared = [
        ("this version", own),
        *((baseline_name(n), mapping(within(b, deciding))) for n, b in baselines.items()),
    ]
    compared = [(label, metric) for label, metric in compared if number(metric.get("value")) is not None]
    scale = _metric_scale(deciding, [metric for _, metric in compared])
    trivial = next((name for name in TRIVIAL_BASELINES if name in baselines), None)
    bar = number(within(baselines, trivial, deciding, "value")) if trivial else None
    rows = number(own.get("n"))
    caption = [f"{better(deciding).capitalize()} is better. The thin lines are 95% intervals."]
    if trivial and bar is not None:
        trivially = f"{value_text(deciding, bar, rows)} of the trivial answer ({baseline_name(trivial)})"
        caption.append(f"The dashed line is the {trivially}.")
    on_rows = f" on {rows:,.0f} rows" if rows is not None else ""
    return RowChart(
        title=f"{metric_name(deciding).capitalize() if deciding != 'mcc' else 'MCC'}{on_rows}",
        caption=" ".join(caption),
        tracks=[
            Track(
                label=label,
                shown=value_text(deciding, number(metric.get("value")) or 0.0, rows),
                at=scale.at(number(metric.get("value")) or 0.0),
                low=_place(scale, metric.get("low")),
                high=_place(scale, metric.get("high")),
                emphasised=index == 0,
                detail=interval_text(deciding, metric),
            )
            for index, (label, metric) in enumerate(compared)
        ],
        ticks=[(scale.at(tick), _tick(deciding, tick)) for tick in scale.ticks()],
        origin=scale.at(0.0),
        reference=None if bar is None else scale.at(bar),
    )


def _metric_scale(name: str, metrics: list[Mapping[str, Any]]) -> Scale:
    ends = [
        value
        for metric in metrics
        for key in ("value", "low", "high")
        if (value := number(metric.get(key))) is not None
    ]
    if name in SHARE_METRICS:
        return Scale(0.0, 1.0)
    if name in CORRELATIONS:
        return Scale(min(0.0, *ends), 1.0)
    return Scale(min(0.0, *ends), max(ends) * 1.05 or 1.0)


def _tick(name: str, value: float) -> str:
    return f"{100 * value:.0f}%" if name in SHARE_METRICS else f"{value:.3g}"


def _place(scale: Scale, value: Any) -> float | None:
    finite = number(value)
    return None if finite is None else scale.at(finite)


def candidates_chart(init: Mapping[str, Any]) -> RowChart | None:
    """Chart the probe's candidates as dots with intervals, in the order of the table; a mixture has no dot."""
    shown, hidden = shown_candidates(init)
    measured = [(candidate, *own_loss(candidate)) for candidate in shown]
    ends = [end for _, *of_loss in measured for end in of_loss if end is not None]
    if not ends:
        return None
    scale = Scale.around(ends, least=0.0)
    chosen = text(init.get("chosen"))
    return RowChart(
        title="The probe's loss of each starting point",
        caption=_probe_caption(init, hidden),
        tracks=[
            Track(
                label=text(candidate.get("embedding")),
                shown="" if loss is None else f"{loss:.3f}",
                at=_place(scale, loss),
                low=_place(scale, low),
                high=_place(scale, high),
                emphasised=text(candidate.get("embedding")) == chosen,
                detail=candidate_detail(candidate),
            )
            for candidate, loss, low, high in measured
        ],
        ticks=[(scale.at(tick), f"{tick:.3g}") for tick in scale.ticks()],
    )


def _probe_caption(init: Mapping[str, Any], hidden: int) -> str:
    rows, overlap = number(init.get("rows")), number(init.get("overlap"))
    sentences = ["Mean loss in nats before any training; lower is better."]
    if rows is not None:
        sentences.append(f"{'It' if init.get('reason') else 'The chosen one'} was scored on {counted(rows, 'row')}.")
    if overlap:
        known = "It" if init.get("reason") else "Some candidate"
        sentences.append(f"{known} was trained on {overlap:,.0f} of the task's rows.")
    if hidden:
        sentences.append(f"{hidden:,} worse {'candidate is' if hidden == 1 else 'candidates are'} not shown.")
    if not init.get("reason"):  # otherwise nothing was chosen
        sentences.append("These numbers chose the start; they do not measure the version.")
    return " ".join(sentences)


def curves(training: Mapping[str, Any]) -> list[StepChart]:
    """Chart the training loss and the norm of the embedding over the steps."""
    drawn = [
        curve("Training loss in nats", numbers(training.get("loss")), smoothed=True),
        curve("Norm of the embedding ‖z‖", numbers(training.get("z_norm")), smoothed=False),
    ]
    return [line for line in drawn if line is not None]


def live_curves(events: Sequence[Mapping[str, Any]]) -> list[StepChart]:
    """Chart the losses of the current attempt from its notes, one line per training; the newest four."""
    attempt = max((number(event.get("attempt")) or 0 for event in events), default=0)
    losses: dict[str, list[float]] = {}
    for event in events:
        loss, said = number(mapping(event.get("numbers")).get("loss")), text(event.get("message"))
        part, step, _ = said.partition(" step ")
        if event.get("kind") == "note" and event.get("attempt") == attempt and loss is not None and step:
            losses.setdefault(part, []).append(loss)
    drawn = [
        curve(f"Loss of {part} in nats", values, smoothed=False, every=STEPS_BETWEEN) for part, values in losses.items()
    ]
    return [line for line in drawn if line is not None][-_MOST_LIVE:]


def times_chart(seconds: Mapping[str, Any]) -> RowChart | None:
    """Chart the time by stage."""
    stages = [(text(stage), value) for stage, taken in seconds.items() if (value := number(taken)) is not None]
    if not stages:
        return None
    total = sum(value for _, value in stages)
    scale = Scale(0.0, max(value for _, value in stages) or 1.0)
    return RowChart(
        title=f"Time by stage, {seconds_text(total)} in all",
        tracks=[Track(stage, seconds_text(value), scale.at(value)) for stage, value in stages],
        origin=0.0,
    )


def labels_chart(dataset: Mapping[str, Any]) -> RowChart | None:
    """Chart the training rows per label, in the order of the labels."""
    counts = [
        (label, count) for label in mappings(dataset.get("labels")) if (count := number(label.get("count"))) is not None
    ]
    if not counts:
        return None
    scale = Scale(0.0, max(count for _, count in counts) or 1.0)
    hidden = len(counts) - MOST_LABELS
    return RowChart(
        title="Training rows per label",
        caption=f"{hidden:,} more labels are not shown." if hidden > 0 else "",
        tracks=[
            Track(
                label=label_name(label.get("label")),
                shown=f"{count:,.0f}",
                at=scale.at(count),
                detail=_word(label),
            )
            for label, count in counts[:MOST_LABELS]
        ],
        origin=0.0,
    )


def _word(label: Mapping[str, Any]) -> str:
    word = text(label.get("word"))
    return f"written “{word}”" if word and word != any_label(label.get("label")) else ""
