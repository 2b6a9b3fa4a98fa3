"""`onboard drift TASK`: whether the texts of a task have changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.connection import connected
from cli.output import AsJson, emit, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.contract.drift import DriftComparison, DriftDifference, DriftDocument, DriftWeek

_LABELS_SHOWN = 10
_AGAINST = {"training": "the training rows", "week_before": "the week before"}
_NAMED = {
    "labels": "labels (stability index)", "confidence": "confidence (stability index)",
    "unknown": "more unknown texts", "features": "features (distance)",
}  # fmt: skip


def drift(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    as_json: AsJson = False,
) -> None:
    """Compare a week of predicted texts with the training rows and the week before.

    Only numbers about texts are kept, never texts: ONBOARD_DRIFT=false keeps none.
    """
    with connected() as service:
        document = service.drift(task)
    emit(document, as_json, lambda: _shown(document))


def _shown(document: DriftDocument) -> RenderableType:
    from rich.console import Group

    parts: list[RenderableType] = [_headline(document)]
    for comparison in document.comparisons:
        parts += ["", *_comparison(comparison)]
    if document.weeks:
        parts += [
            "",
            table(("week of", "texts", "unknown", "confidence", ""), [_week(week) for week in document.weeks]),
        ]
    if document.advice:
        parts += ["", *document.advice]
    return Group(*parts)


def _headline(document: DriftDocument) -> str:
    named, texts = f"{document.task}@v{document.version}", f"{document.texts:,} texts"
    if not document.weeks:
        return f"{named}: no texts were recorded."
    week = f"{texts} in the week of {document.week}"
    if document.alarm is None:
        return f"{named}: no drift among {week}."
    alarms = [
        f"{' and '.join(names)} from {_AGAINST[against]}"
        for against, names in (("training", document.alarm.training), ("week_before", document.alarm.week_before))
        if names
    ]
    return (
        f"{named}: the texts have changed. After {document.alarm.texts:,} texts, {'; '.join(alarms)} differed. {week}."
    )


def _comparison(comparison: DriftComparison) -> list[RenderableType]:
    every = {name: getattr(comparison, name) for name in _NAMED}
    rows = [_difference(name, difference, comparison) for name, difference in every.items() if difference is not None]
    head = f"against {_AGAINST[comparison.against]} ({comparison.rows:,})"
    parts: list[RenderableType] = [table((head, "difference", "chance", "p", ""), rows)] if rows else []
    labels = [label for label in comparison.by_label if label.index > label.chance]
    if labels:
        shown = sorted(labels, key=lambda label: -label.index)[:_LABELS_SHOWN]
        of_labels = [
            (label.label, f"{100 * label.share_before:.1f}%", f"{100 * label.share:.1f}%", f"{label.index:.3f}",
             f"{label.chance:.3f}") for label in shown
        ]  # fmt: skip
        parts.append(table(("label", "share before", "share now", "index", "chance"), of_labels, folded=("label",)))
    return parts


def _difference(name: str, one: DriftDifference, comparison: DriftComparison) -> tuple[str, ...]:
    note = "differs" if one.beyond_chance else ""
    note = "not exact" if name in comparison.left_out else note
    return _NAMED[name], f"{one.value:.3f}", f"{one.chance:.3f}", f"{one.p:.2g}", note


def _week(week: DriftWeek) -> tuple[str, ...]:
    unknown = "" if week.unknown is None else f"{100 * week.unknown:.1f}%"
    sure = "" if week.confidence is None else f"{week.confidence:.2f}"
    return week.week, f"{week.texts:,}", unknown, sure, "alarm" if week.alarm else ""
