"""`onboard compare`: two versions of a task on held-out rows that neither was trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.connection import connected
from cli.output import AsJson, emit, table
from onboard.errors import NotBetterError

if TYPE_CHECKING:
    from rich.console import RenderableType

_FLIPS_SHOWN = 10


def compare(
    a: Annotated[str, typer.Argument(help="TASK@REF, the earlier one.")],
    b: Annotated[str, typer.Argument(help="TASK@REF, the later one: the verdict is about it.")],
    if_better: Annotated[
        bool, typer.Option("--if-better", help="Exit with 4 unless the later one is significantly better.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Metrics, confusion, flipped answers and the paired interval of two versions."""
    with connected() as service:
        document = service.compare(a, b)
    emit(document, as_json, lambda: _shown(document))
    if if_better and not document["better"]:
        raise typer.Exit(NotBetterError.exit_code)


def _shown(document: dict[str, Any]) -> RenderableType:
    from rich.console import Group

    return Group(document["reason"], *_metrics(document), *_paired(document["comparison"]), *_flips(document))


def _metrics(document: dict[str, Any]) -> list[RenderableType]:
    sides = document["a"], document["b"]
    if document["comparison"] is None:
        return []
    heads = "on shared rows", *(f"v{side['version']}{' weak' if side['weak'] else ''}" for side in sides)
    return [table(heads, ((name, *(_value(side["shared"][name]) for side in sides)) for name in sides[0]["shared"]))]


def _value(metric: dict[str, Any]) -> str:
    if metric["low"] is None:
        return f"{metric['value']:.3f}"
    return f"{metric['value']:.3f} ({metric['low']:.3f} to {metric['high']:.3f})"


def _paired(comparison: dict[str, Any] | None) -> list[str]:
    """The numbers of both tests; the sentence above them says which of the two decided."""
    if comparison is None:
        return []
    lines = []
    if comparison["newly_right"] is not None:
        lines.append(
            f"{comparison['newly_right']} newly right, {comparison['newly_wrong']} newly wrong "
            f"(McNemar p = {comparison['p_value']:.3g})"
        )
    if comparison["low"] is not None:
        lines.append(
            f"change of the {comparison['loss'].replace('_', '-')}: {comparison['increase']:+.3f} "
            f"({comparison['low']:+.3f} to {comparison['high']:+.3f})"
        )
    return lines


def _flips(document: dict[str, Any]) -> list[RenderableType]:
    from onboard.domain.dataset import label_text

    if not document["flipped"]:
        return []
    heads = "label", f"v{document['a']['version']} said", f"v{document['b']['version']} says", "rows"
    flips = document["flipped"][:_FLIPS_SHOWN]
    rows = [(*(label_text(flip[key]) for key in ("label", "a", "b")), str(flip["count"])) for flip in flips]
    return [table(heads, rows)]
