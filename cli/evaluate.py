"""`onboard evaluate`: a version measured on a file of labeled rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.compare import LabelField, TextField, UnknownLabels, labelled, texts_of
from cli.connection import connected
from cli.output import AsJson, emit, say, table

if TYPE_CHECKING:
    from rich.console import RenderableType

_MISTAKES_SHOWN = 10


def evaluate(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of labeled rows.")],
    text_field: TextField = None,
    label_field: LabelField = None,
    unknown_labels: UnknownLabels = "refuse",
    as_json: AsJson = False,
) -> None:
    """Measure a version on labeled rows, without those that it was trained on."""
    asked = labelled(file, text_field, label_field, unknown_labels)
    with connected() as service:
        document = service.evaluate(task, asked)
    for finding in document["warnings"]:
        say(f"warning: {finding['message']} {finding['remedy']}")
    emit(document, as_json, lambda: _shown(document))


def _shown(document: dict[str, Any]) -> RenderableType:
    from rich.console import Group

    return Group(document["reason"], *_metrics(document["metrics"]), *_mistakes(document))


def _metrics(metrics: dict[str, Any]) -> list[RenderableType]:
    if not metrics:
        return []
    rows = [(name, f"{metric['value']:.3f}", _interval(metric)) for name, metric in metrics.items()]
    return [table(("metric", "value", "95% interval"), rows)]


def _interval(metric: dict[str, Any]) -> str:
    return "" if metric["low"] is None else f"{metric['low']:.3f} to {metric['high']:.3f}"


def _mistakes(document: dict[str, Any]) -> list[RenderableType]:
    from onboard.domain.dataset import label_text

    mistakes = document["mistakes"][:_MISTAKES_SHOWN]
    if not mistakes:
        return []
    rows = [
        (texts_of(row), label_text(row["label"]), label_text(row["answer"]), f"{row['probability']:.2f}")
        for row in mistakes
    ]
    return [table(("surest mistakes", "label", "answer", "probability"), rows, folded=("surest mistakes",))]
