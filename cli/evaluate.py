"""`onboard evaluate`: measure a version on a file of labeled rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.compare import texts_of
from cli.connection import connected
from cli.options import NOTHING, labelled_options
from cli.output import AsJson, emit, say, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.contract.evaluations import EvaluationDocument

_MISTAKES_SHOWN = 10


@labelled_options
def evaluate(
    task: Annotated[str, typer.Argument(help="TASK[@latest|@vN|@ALIAS].")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of labeled rows.")],
    as_json: AsJson = False,
    options: Mapping[str, Any] = NOTHING,
) -> None:
    """Measure a version on labeled rows that it was not trained on."""
    with connected() as service:
        document = service.evaluate(task, file, **options)
    for finding in document.warnings:
        say(f"warning: {finding['message']} {finding['remedy']}")
    emit(document, as_json, lambda: _shown(document))


def _shown(document: EvaluationDocument) -> RenderableType:
    from rich.console import Group

    return Group(document.reason, *_metrics(document.metrics), *_mistakes(document))


def _metrics(metrics: dict[str, Any]) -> list[RenderableType]:
    if not metrics:
        return []
    rows = [(name, f"{metric['value']:.3f}", _interval(metric)) for name, metric in metrics.items()]
    return [table(("metric", "value", "95% interval"), rows)]


def _interval(metric: dict[str, Any]) -> str:
    return "" if metric["low"] is None else f"{metric['low']:.3f} to {metric['high']:.3f}"


def _mistakes(document: EvaluationDocument) -> list[RenderableType]:
    from onboard.domain.dataset import label_text

    mistakes = document.mistakes[:_MISTAKES_SHOWN]
    if not mistakes:
        return []
    rows = [
        (texts_of(row), label_text(row.label), label_text(row.answer), f"{row.probability:.2f}") for row in mistakes
    ]
    return [table(("surest mistakes", "label", "answer", "probability"), rows, folded=("surest mistakes",))]
