"""`onboard compare`: compare two versions of a task on rows that neither was trained on, or on the rows of a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.connection import connected
from cli.options import NOTHING, labelled_options
from cli.output import AsJson, emit, table
from onboard.domain.counting import counted
from onboard.errors import InputError, NotBetterError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from onboard.contract.evaluations import ComparisonDocument, FlippedRow, MistakenRow, PairedComparison

_FLIPS_SHOWN = 10
_ROWS_SHOWN = 20


@labelled_options
def compare(
    a: Annotated[str, typer.Argument(help="Earlier version, TASK@REF.")],
    b: Annotated[str, typer.Argument(help="Later version, TASK@REF, which the verdict is about.")],
    test: Annotated[
        Path | None, typer.Option("--test", metavar="FILE", help="File of labeled rows to compare on.")
    ] = None,
    if_better: Annotated[
        bool, typer.Option("--if-better", help="Exit with 4 unless the later version is significantly better.")
    ] = False,
    as_json: AsJson = False,
    options: Mapping[str, Any] = NOTHING,
) -> None:
    """Compare two versions: metrics, confusion, flipped answers and the paired interval."""
    if test is None and options != NOTHING:
        raise InputError("fields-without-test-file")
    with connected() as service:
        document = service.compare(a, b, test, **({} if test is None else options))
    emit(document, as_json, lambda: _shown(document))
    if if_better and not document.better:
        raise typer.Exit(NotBetterError.exit_code)


def _shown(document: ComparisonDocument) -> RenderableType:
    from rich.console import Group

    parts = document.reason, *_metrics(document), *_paired(document.comparison), *_flips(document)
    return Group(*parts, *_flipped_rows(document), *_worth(document))


def _worth(document: ComparisonDocument) -> list[str]:
    """Explain how reliable the evidence is, and how to get better evidence."""
    lines = [document.worth] if document.worth else []
    if document.relabeled:
        lines.append(f"{counted(document.relabeled, 'row')} with a changed label: not counted in the verdict.")
    if document.comparison is None or document.worth:
        references = " ".join(f"{document.task}@v{side.version}" for side in (document.earlier, document.later))
        lines.append(f"For a verdict on your labeled rows: onboard compare {references} --test FILE")
    return lines


def _flipped_rows(document: ComparisonDocument) -> list[RenderableType]:
    from onboard.domain.dataset import label_text

    rows = document.flipped_rows
    if not rows:
        return []
    heads = "text", "label", f"v{document.earlier.version} said", f"v{document.later.version} says"
    listed = [
        (texts_of(row), _label(row), label_text(row.earlier), label_text(row.later)) for row in rows[:_ROWS_SHOWN]
    ]
    more = [(f"and {len(rows) - _ROWS_SHOWN} more with --json", "", "", "")] if len(rows) > _ROWS_SHOWN else []
    return [table(heads, [*listed, *more], folded=("text",))]


def texts_of(row: FlippedRow | MistakenRow) -> str:
    """The beginnings of a row's texts on one line."""
    return " · ".join(filter(None, (row.text, row.text_b)))


def _label(row: FlippedRow) -> str:
    from onboard.domain.dataset import label_text

    before = row.label_before
    return label_text(row.label) + ("" if before is None else f" (was {label_text(before)})")


def _metrics(document: ComparisonDocument) -> list[RenderableType]:
    before, after = document.earlier.shared, document.later.shared
    if document.comparison is None or before is None or after is None:
        return []
    sides = document.earlier, document.later
    heads = "on shared rows", *(f"v{side.version}{' weak' if side.weak else ''}" for side in sides)
    return [table(heads, ((name, _value(before[name]), _value(after[name])) for name in before))]


def _value(metric: dict[str, Any]) -> str:
    if metric["low"] is None:
        return f"{metric['value']:.3f}"
    return f"{metric['value']:.3f} ({metric['low']:.3f} to {metric['high']:.3f})"


def _paired(comparison: PairedComparison | None) -> list[str]:
    """The numbers of both tests. The sentence above them names the one that decides."""
    if comparison is None:
        return []
    lines = []
    if comparison.newly_right is not None:
        lines.append(
            f"{comparison.newly_right} newly right, {comparison.newly_wrong} newly wrong "
            f"(McNemar p = {comparison.p_value:.3g})"
        )
    if comparison.low is not None:
        lines.append(
            f"change of the {comparison.loss.replace('_', '-')}: {comparison.increase:+.3f} "
            f"({comparison.low:+.3f} to {comparison.high:+.3f})"
        )
    return lines


def _flips(document: ComparisonDocument) -> list[RenderableType]:
    from onboard.domain.dataset import label_text

    if not document.flipped:
        return []
    heads = "label", f"v{document.earlier.version} said", f"v{document.later.version} says", "rows"
    flips = document.flipped[:_FLIPS_SHOWN]
    rows = [(*map(label_text, (flip.label, flip.earlier, flip.later)), str(flip.count)) for flip in flips]
    return [table(heads, rows)]
