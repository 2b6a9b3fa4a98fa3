"""The map of tasks as a self-contained HTML page: SVG, no script, no network, all names escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onboard.domain.printable import printable
from onboard.report.html import environment
from onboard.report.map_layout import FONT_SIZE, NARROW, WIDE, lay_out, nearest_text, outline
from onboard.report.reading import mappings, text

_LETTER: Final = 0.62 * FONT_SIZE  # pixels; the maximum width in fixed-width fonts


def render_map(document: Mapping[str, Any]) -> str:
    """Render the page of the document of `onboard.versions.task_map.map_tasks`."""
    return environment().get_template("map.html").render(**map_parts(document))


def map_parts(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of map_body.html and map_style.html.

    The page contains two maps and shows the one that fits, as letters of a wide map would be too small on a phone.
    """
    wide, narrow = (lay_out(document, lambda name, _: _LETTER * len(name), canvas) for canvas in (WIDE, NARROW))
    rows, tasks = map_rows(document), mappings(document.get("tasks"))
    return {
        "layout": wide,
        "layouts": {"wide": wide, "narrow": narrow},
        "legend": [outline(family.shape, 0, 0, 5.5) for family in wide.families],
        "rows": rows,
        "own_rows": [row for row, task in zip(rows, tasks, strict=True) if not task.get("source")],
        "source_rows": [row for row, task in zip(rows, tasks, strict=True) if task.get("source")],
        "size": FONT_SIZE,
    }


def map_rows(document: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return task, version, nearest source family and nearest tasks for display."""
    return [
        (
            printable(text(task.get("task"))),
            f"v{text(task.get('version'))}{' weak' if task.get('weak') else ''}",
            printable(text(task.get("family"))),
            nearest_text(task),
        )
        for task in mappings(document.get("tasks"))
    ]
