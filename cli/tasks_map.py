"""`onboard tasks map`: a map of tasks by similarity, as a table, a page or a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from cli.connection import connected
from cli.output import AsJson, Document, emit, table, write_file
from onboard.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

_ENDINGS: Final = (".html", ".png")


def map_command(
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.png|.html", help="Write the map as a picture or an HTML page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Map the latest embeddings of all tasks in two dimensions, with the nearest tasks of each."""
    if output is not None and output.suffix.lower() not in _ENDINGS:
        raise InputError("map-file-type-unknown", output=output.name)
    with connected() as service:
        document = service.map_document()
    if output is not None:
        write_file(output, _drawn(document, output.suffix.lower()), "map", "--output another file")
    emit(document, as_json, lambda: _table(document))


def _drawn(document: Document, ending: str) -> bytes:
    if ending == ".html":
        from onboard.report.map_html import render_map

        return render_map(document).encode()
    from onboard.report.map_png import draw_map

    return draw_map(document)


def _table(document: Document) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from onboard.report.map_html import map_rows
    from onboard.report.map_layout import headline, map_notes

    rows = []
    for task, row in zip(document["tasks"], map_rows(document), strict=True):
        name, version, family, nearest = row
        rows.append((name, version, family, f"{task['x']:.2f}", f"{task['y']:.2f}", nearest))
    heads = ("task", "latest", "nearest source family", "x", "y", "nearest")
    shown = table(heads, rows, folded=("nearest",))
    return Group(Text(headline(document), "bold"), shown, *(Text(note, "dim") for note in map_notes(document)))
