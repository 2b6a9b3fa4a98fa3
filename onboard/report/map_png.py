"""The map of tasks as PNG: the page's shapes, drawn with Pillow at twice their size."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from onboard.report.map_layout import FONT_SIZE, HEIGHT, WIDTH, MapLayout, Mark, lay_out, outline

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont, ImageFont

_SCALE: Final = 2  # sharp on dense screens and in print
_SMOOTH: Final = 2  # oversampling, as Pillow's polygons are not smooth
_PAPER, _PANEL, _INK, _SOFT = "#ffffff", "#f6f8fa", "#1b2330", "#566273"
_EDGE: Final = 20  # pixels of the page, as all below
_ROW: Final = 22
_HEAD: Final = 52
_BOLD: Final = 0.35  # the font has one weight: letters are drawn this much wider


def draw_map(document: Mapping[str, Any]) -> bytes:
    """Return the PNG file for the document of `onboard.versions.task_map.map_tasks`."""
    from PIL import Image

    factor = _SCALE * _SMOOTH
    fonts = _Fonts(factor)
    layout = lay_out(document, fonts.width)
    legend = _legend_rows(layout, fonts)
    notes = [line for note in layout.notes for line in _wrapped(note, fonts)]
    top = _HEAD + _ROW * len(legend)
    width, height = WIDTH + 2 * _EDGE, top + HEIGHT + _ROW * len(notes) + 2 * _EDGE
    image = Image.new("RGB", (width * factor, height * factor), _PAPER)
    page = _Page(image, fonts, factor)
    page.text(_EDGE, _EDGE + 8, layout.headline, _INK, size=17)
    _draw_legend(page, legend)
    _draw_layout(page, layout, top)
    for index, line in enumerate(notes):
        page.text(_EDGE, top + HEIGHT + _EDGE + _ROW * index, line, _SOFT)
    smaller = image.resize((width * _SCALE, height * _SCALE), Image.Resampling.LANCZOS)
    return _png(smaller)


def _draw_layout(page: _Page, layout: MapLayout, top: float) -> None:
    page.panel(_EDGE, top, WIDTH, HEIGHT)
    for mark in layout.marks:
        page.mark(mark, mark.x + _EDGE, mark.y + top)
    for name in layout.names:
        page.name(name.x + _EDGE, name.y + top, name.text, bold=not name.source)


def _draw_legend(page: _Page, rows: list[list[tuple[float, Mark, str]]]) -> None:
    for index, row in enumerate(rows):
        y = _EDGE + 38 + _ROW * index
        for x, mark, label in row:
            page.mark(mark, x, y)
            page.text(x + 14, y, label, _INK)


def _png(image: Image) -> bytes:
    written = BytesIO()
    image.save(written, "PNG", optimize=True)
    return written.getvalue()


class _Fonts:
    """Pillow's font, which is the same everywhere, in every requested size."""

    def __init__(self, factor: int) -> None:
        self._factor = factor
        self._sizes: dict[float, FreeTypeFont | ImageFont] = {}

    def of(self, size: float) -> FreeTypeFont | ImageFont:
        """Return the font for an image that is `factor` times as large as the page."""
        from PIL import ImageFont

        if size not in self._sizes:
            self._sizes[size] = ImageFont.load_default(size * self._factor)
        return self._sizes[size]

    def width(self, text: str, bold: bool = False) -> float:
        """Return the width of a text, in the page's pixels."""
        return float(self.of(FONT_SIZE).getlength(text)) / self._factor + 2 * _BOLD * bold


class _Page:
    """Draws in the page's pixels on an image that is `factor` times as large."""

    def __init__(self, image: Image, fonts: _Fonts, factor: int) -> None:
        from PIL import ImageDraw

        self._draw = ImageDraw.Draw(image)
        self._fonts = fonts
        self._factor = factor

    def text(self, x: float, y: float, text: str, colour: str, size: float = FONT_SIZE, stroke: float = 0.0) -> None:
        """Draw a line of text from its left edge and its middle; `stroke` widens the letters."""
        place, font = (x * self._factor, y * self._factor), self._fonts.of(size)
        self._draw.text(place, text, fill=colour, font=font, anchor="lm", stroke_width=stroke * self._factor)

    def name(self, x: float, y: float, text: str, *, bold: bool) -> None:
        """Draw a name on the map, readable on top of marks."""
        stroke = _BOLD if bold else 0.0
        self.text(x, y, text, _PANEL, stroke=stroke + 1.5)
        self.text(x, y, text, _INK, stroke=stroke)

    def panel(self, x: float, y: float, width: float, height: float) -> None:
        """Draw the background of the map."""
        box = [edge * self._factor for edge in (x, y, x + width, y + height)]
        self._draw.rounded_rectangle(box, radius=8 * self._factor, fill=_PANEL)

    def mark(self, mark: Mark, x: float, y: float) -> None:
        """Draw a task's mark."""
        rim = _PAPER if mark.source else _INK
        corners = outline(mark.family.shape, x, y, mark.radius)
        line = max(1, round(mark.rim * self._factor))
        if corners is None:
            box = [edge * self._factor for edge in (x - mark.radius, y - mark.radius, x + mark.radius, y + mark.radius)]
            self._draw.ellipse(box, fill=mark.family.colour, outline=rim, width=line)
            return
        scaled = [(dx * self._factor, dy * self._factor) for dx, dy in corners]
        self._draw.polygon(scaled, fill=mark.family.colour, outline=rim, width=line)


def _legend_rows(layout: MapLayout, fonts: _Fonts) -> list[list[tuple[float, Mark, str]]]:
    """Arrange the families in as many rows as they need."""
    rows: list[list[tuple[float, Mark, str]]] = [[]]
    x = _EDGE + 8.0
    for family in layout.families:
        label = f"{family.name} ({family.tasks:,})"
        wide = 14 + fonts.width(label) + 24
        if x + wide > WIDTH + _EDGE and rows[-1]:
            rows.append([])
            x = _EDGE + 8.0
        rows[-1].append((x, Mark("", "", 0, 0, 5.5, family, True), label))
        x += wide
    return rows


def _wrapped(note: str, fonts: _Fonts) -> list[str]:
    """Wrap a note to the width of the page."""
    lines = [""]
    for word in note.split():
        longer = f"{lines[-1]} {word}".strip()
        if fonts.width(longer) <= WIDTH or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
