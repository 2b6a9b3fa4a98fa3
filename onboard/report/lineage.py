"""Draw a lineage as SVG: a column for the inputs of versions, then a column per generation.

Uses presentation attributes only (no style, no script), so that it works under any content security policy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Final

from onboard.contract.lineage import EdgeKind, LineageDocument, LineageEdge, LineageNode, NodeKind

_WIDTH: Final = 210  # pixels, as all below: of a box
_HEIGHT: Final = 34
_GAP_X: Final = 70
_GAP_Y: Final = 14
_MARGIN: Final = 20
_MOST_LETTERS: Final = 30  # of a label; its title shows it in full
_COLORS: Final[dict[NodeKind, tuple[str, str]]] = {  # of a box: inside, and its frame
    "dataset": ("#e3effb", "#3b77b5"),
    "init": ("#f2f2f2", "#777777"),
    "hypernetwork": ("#efe6fa", "#7a4fb0"),
    "prior": ("#fdf0d9", "#a86b00"),
    "version": ("#e2f4e6", "#2f8a4c"),
}
_LINES: Final[dict[EdgeKind, str]] = {
    "trained_on": "#3b77b5",
    "started_from": "#777777",
    "carried_from": "#2f8a4c",
    "adapted_by": "#b9a3d6",
    "drawn_towards": "#d9b877",
    "tuned_from": "#7a4fb0",
    "tuned_on": "#3b77b5",
    "made_of": "#3b77b5",
}
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not even escaped

Places = dict[str, tuple[int, int]]  # left and upper edge of each node's box


def render_lineage(lineage: LineageDocument) -> str:
    """Return the picture as an SVG document; all text is escaped."""
    places = _places(lineage)
    width = max(x for x, _ in places.values()) + _WIDTH + _MARGIN if places else 2 * _MARGIN
    height = max(y for _, y in places.values()) + _HEIGHT + _MARGIN if places else 2 * _MARGIN
    named: dict[str, list[str]] = {}
    for alias, version in lineage.aliases.items():
        named.setdefault(f"{lineage.task}@v{version}", []).append(alias)
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" font-family="system-ui, sans-serif" font-size="12">',
            f"<title>Lineage of {_text(lineage.task)}</title>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *(_line(edge, places) for edge in lineage.edges),
            *(_box(node, places[node.id], sorted(named.get(node.id, []))) for node in lineage.nodes),
            "</svg>",
            "",
        )
    )


def _places(lineage: LineageDocument) -> Places:
    rows: dict[int, int] = {}
    places = {}
    for node, column in _columns(lineage):
        row = rows.get(column, 0)
        rows[column] = row + 1
        places[node.id] = (_MARGIN + column * (_WIDTH + _GAP_X), _MARGIN + row * (_HEIGHT + _GAP_Y))
    return places


def _columns(lineage: LineageDocument) -> Iterator[tuple[LineageNode, int]]:
    """Yield each node with its column: 0, or for a version one more than the rightmost of its inputs."""
    sources: dict[str, list[str]] = {}
    for edge in lineage.edges:
        sources.setdefault(edge.target, []).append(edge.source)
    columns: dict[str, int] = {}
    for start in sources:
        waiting = [start]
        while waiting:  # not recursive, as a line of ancestors may be long
            missing = [source for source in sources.get(waiting[-1], []) if source not in columns]
            if missing:
                waiting.extend(missing)
                continue
            last = waiting.pop()
            columns[last] = max((columns[source] + 1 for source in sources.get(last, [])), default=0)
    return ((node, columns.get(node.id, 0)) for node in lineage.nodes)


def _line(edge: LineageEdge, places: Places) -> str:
    (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
    x1, y1, y2 = x1 + _WIDTH, y1 + _HEIGHT // 2, y2 + _HEIGHT // 2
    bend = (x2 - x1) // 2
    path = f"M{x1} {y1} C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    line = f'<path d="{path}" fill="none" stroke="{_LINES[edge.kind]}" stroke-width="1.5"/>'
    if edge.share is None:
        return line
    middle = f'x="{x1 + bend}" y="{(y1 + y2) // 2 - 4}" text-anchor="middle"'
    return f'{line}<text {middle} fill="#1a1a1a">{100 * edge.share:.0f}%</text>'


def _box(node: LineageNode, place: tuple[int, int], aliases: list[str]) -> str:
    x, y = place
    fill, stroke = _COLORS[node.kind]
    weak = " (weak)" if node.facts.get("weak") else ""
    label = f"{node.label}{weak}{' · ' + ', '.join(aliases) if aliases else ''}"
    shown = label if len(label) <= _MOST_LETTERS else f"{label[: _MOST_LETTERS - 1]}…"
    return (
        f"<g><title>{_text(node.kind)}: {_text(label)}</title>"
        f'<rect x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6" '
        f'fill="{fill}" stroke="{stroke}"/>'
        f'<text x="{x + 10}" y="{y + _HEIGHT // 2 + 4}" fill="#1a1a1a">{_text(shown)}</text></g>'
    )


def _text(text: str) -> str:
    return escape(_NO_XML.sub("\N{REPLACEMENT CHARACTER}", text))
