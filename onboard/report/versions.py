"""Compare the versions of a task by one metric with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onboard.domain.report import METRICS, SHARE_METRICS
from onboard.domain.task import marks
from onboard.report.charts import RowChart, Scale, Track
from onboard.report.reading import mapping, number, text
from onboard.report.sentences import better, metric_name, metric_text, value_text

MOST_SHOWN: Final = 30


def measured(version: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any]]:
    """Return the metric that represents a version's document: the split, its name, its numbers; "", "" and {} without
    one.
    """
    for split in ("test", "validation"):
        metrics = mapping(mapping(version.get("metrics")).get(split))
        for name in METRICS.get(text(version.get("task_kind")), ()):
            if number(mapping(metrics.get(name)).get("value")) is not None:
                return split, name, mapping(metrics.get(name))
    return "", "", {}


def measured_text(version: Mapping[str, Any]) -> str:
    """Return "accuracy 81% (73–87%) on 120 test rows"; "" for an unmeasured version."""
    split, name, metric = measured(version)
    if not name:
        return ""
    rows = number(metric.get("n"))
    on_rows = f"{split} rows" if rows is None else f"{rows:,.0f} {split} rows"
    return f"{metric_name(name)} {metric_text(name, metric)} on {on_rows}"


def result_of(version: Mapping[str, Any]) -> dict[str, Any]:
    """Return a version's result for a table: `metric`, `value`, `split`, `rows`, `shown` and `metrics`.

    `shown` is short ("81%"); `metrics` has every metric of that split by name, as text. Everything is empty for an
    unmeasured version.
    """
    split, name, metric = measured(version)
    metrics = mapping(mapping(version.get("metrics")).get(split))
    values = {key: mapping(entry) for key, entry in metrics.items()}
    value, rows = number(metric.get("value")), number(metric.get("n"))
    return {
        "metric": name or None,
        "value": value,
        "split": split or None,
        "rows": rows,
        "shown": "" if value is None else value_text(name, value, rows),
        "metrics": {
            key: value_text(key, at, number(entry.get("n")))
            for key, entry in values.items()
            if (at := number(entry.get("value"))) is not None
        },
        "weak": bool(version.get("weak")),
    }


def versions_chart(versions: Sequence[Mapping[str, Any]]) -> RowChart | None:
    """Chart the metric of the newest measured version for all versions with it, as dots with intervals.

    Args:
        versions: their documents, newest first.
    """
    seen = [(version, *measured(version)) for version in versions]
    deciding = next((name for _, _, name, _ in seen if name), "")
    shown = [(version, split, metric) for version, split, name, metric in seen if name and name == deciding][
        :MOST_SHOWN
    ]
    if not shown:
        return None
    values = [number(metric.get(key)) for *_, metric in shown for key in ("value", "low", "high")]
    ends = [value for value in values if value is not None]
    scale = Scale.around(ends, least=0.0, most=1.0) if deciding in SHARE_METRICS else Scale.around(ends)
    return RowChart(
        title=f"{'MCC' if deciding == 'mcc' else metric_name(deciding).capitalize()} of each version",
        caption=f"{better(deciding).capitalize()} is better. The lines are 95% intervals on each version's rows.",
        tracks=[_track(version, split, metric, deciding, scale) for version, split, metric in shown],
        ticks=[(scale.at(tick), value_text(deciding, tick)) for tick in scale.ticks()],
    )


def _track(version: Mapping[str, Any], split: str, metric: Mapping[str, Any], name: str, scale: Scale) -> Track:
    value, low, high = (number(metric.get(key)) for key in ("value", "low", "high"))
    return Track(
        label=f"v{version['version']}{marks(version)}",
        shown=value_text(name, value or 0.0, number(metric.get("n"))),
        at=scale.at(value or 0.0),
        low=None if low is None else scale.at(low),
        high=None if high is None else scale.at(high),
        emphasised=not version.get("weak"),
        detail=f"{split}, {number(metric.get('n')) or 0:,.0f} rows",
    )
