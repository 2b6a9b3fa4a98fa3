"""The layout of the map: positions of marks and names in pixels, shared by the page and the picture."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onboard.data.previews import beginning
from onboard.domain.counting import counted
from onboard.domain.printable import printable
from onboard.report.reading import listing, mapping, mappings, number, text

if TYPE_CHECKING:
    import numpy as np

WIDTH: Final = 960  # pixels, as all below
HEIGHT: Final = 620
FONT_SIZE: Final = 13
_LINE: Final = 16
_MOST_NAMES: Final = 80  # more are unreadable
_MOST_TRIED: Final = 1_000
_CROWD: Final = 150  # tasks; with more, marks are small
OTHER: Final = "other"
_REST: Final = ""  # tasks without a family
# Okabe and Ito's colors, which are distinguishable with any color vision; the marks differ in shape too.
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY: Final = "#8a8f98"
SHAPES: Final = ("circle", "square", "triangle", "diamond", "inverted", "plus")
MOST_FAMILIES: Final = len(COLOURS) * len(SHAPES)  # each with a unique pair


@dataclass(frozen=True, slots=True)
class Canvas:
    """The area of a map, in pixels.

    Args:
        letters: maximum length of a name; the mark's title shows it in full.
    """

    width: int
    height: int
    margin: int
    letters: int


WIDE: Final = Canvas(WIDTH, HEIGHT, 44, 24)
NARROW: Final = Canvas(340, 400, 26, 16)  # fits a phone without scaling

Box = tuple[float, float, float, float]  # left, top, right, bottom
WidthOf = Callable[[str, bool], float]  # of a text in pixels, bold or not


@dataclass(frozen=True, slots=True)
class Family:
    """The appearance of a family's marks."""

    name: str
    tasks: int
    colour: str
    shape: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A task. Its outline is None for a circle."""

    task: str
    title: str
    x: float
    y: float
    radius: float
    family: Family
    source: bool

    @property
    def rim(self) -> float:
        """Width of the outline: learned tasks stand out from shipped ones."""
        return self.radius / 6 if self.source else 1.6

    @property
    def outline(self) -> list[tuple[float, float]] | None:
        """The corners of its shape."""
        return outline(self.family.shape, self.x, self.y, self.radius)


@dataclass(frozen=True, slots=True)
class Name:
    """A task's name next to its mark; `x` is its left edge, `y` its middle."""

    text: str
    x: float
    y: float
    source: bool


@dataclass(frozen=True, slots=True)
class MapLayout:
    """Everything to draw."""

    canvas: Canvas
    headline: str
    notes: list[str]
    families: list[Family]
    marks: list[Mark]
    names: list[Name]


def lay_out(document: Mapping[str, Any], width_of: WidthOf, canvas: Canvas = WIDE) -> MapLayout:
    """Lay out the document of `onboard.versions.task_map.map_tasks`."""
    tasks = [task for task in mappings(document.get("tasks")) if text(task.get("task"))]
    families = _families(tasks, document)
    marks = _marks(tasks, families, canvas)
    names = _names(tasks, marks, width_of, canvas)
    unnamed = len(marks) - len(names)
    shown = [family for family in families.values() if family.tasks]
    notes = map_notes(document)
    if any(mark.source for mark in marks) and not all(mark.source for mark in marks):
        notes.append("Large marks with a rim are tasks learned here; small ones came with the base.")
    if unnamed:
        notes.append(f"{unnamed:,} {'name has' if unnamed == 1 else 'names have'} no room next to the marks.")
    on_top = sorted(marks, key=lambda mark: not mark.source)  # in drawing order
    return MapLayout(canvas, headline(document), notes, shown, on_top, names)


def headline(document: Mapping[str, Any]) -> str:
    """Describe how many tasks there are, and how they are placed."""
    tasks = len(listing(document.get("tasks")))
    if document.get("layout") == "neighbours":
        learned = sum(not task.get("source") for task in mappings(document.get("tasks")))
        return f"{counted(tasks, 'task')}, {learned:,} learned here, each close to similar ones."
    shares = [number(share) or 0.0 for share in listing(document.get("explained"))[:2]]
    shown = counted(tasks, "task")
    if tasks < 2:
        return f"{shown}: nothing to compare yet."
    if sum(shares) == 0:
        return f"{shown}, which are all alike."
    across, upwards = (f"{100 * share:.0f}%" for share in (*shares, 0.0)[:2])
    return f"{shown}; across {across} and upwards {upwards} of the differences."


def map_notes(document: Mapping[str, Any]) -> list[str]:
    """Return notes for readers of the map."""
    by_neighbours = document.get("layout") == "neighbours"
    notes = [
        "Neighbors and groups are meaningful; distances between groups and directions are not."
        if by_neighbours
        else "Two dimensions show similarity only roughly; the nearest tasks are computed from all numbers.",
        "Tasks are similar if their label words and readout weights are similar.",
    ]
    placed = Counter(text(task.get("placed_by")) for task in mappings(document.get("tasks")))
    for basis, by in (("embedding", "embedding"), ("readout", "weights")):
        if 0 < placed[basis] < placed.total():
            notes.append(f"Placed by {by} only, because they lack such words: {counted(placed[basis], 'task')}.")
    if any(mapping(task.get("nearest_source")) for task in mappings(document.get("tasks"))):
        notes.append("A learned task has the family of the nearest source task, which may not fit.")
    if left_out := number(document.get("left_out")):
        which = f"{counted(left_out, 'task')} {'is' if left_out == 1 else 'are'}"
        notes.append(f"{which} on another base, which cannot be compared: not shown.")
    return notes


def _families(tasks: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> dict[str, Family]:
    """Return families by name; the largest have a unique pair of color and shape, all others share one.

    Pairs are assigned by name, so that a family keeps its own as long as the largest are the same.
    """
    known = [(text(family.get("family")), number(family.get("tasks"))) for family in mappings(document.get("families"))]
    families = {}
    for place, (name, count) in enumerate(sorted(known[:MOST_FAMILIES])):
        colour, shape = COLOURS[place % len(COLOURS)], SHAPES[(place + place // len(COLOURS)) % len(SHAPES)]
        families[name] = Family(printable(name), int(count or 0), colour, shape)
    rest = sum(text(task.get("family")) not in families for task in tasks)
    return {**families, _REST: Family(OTHER if families else "tasks", rest, GREY, "circle")}


def _marks(tasks: Sequence[Mapping[str, Any]], families: Mapping[str, Family], canvas: Canvas) -> list[Mark]:
    places = [(number(task.get("x")) or 0.0, number(task.get("y")) or 0.0) for task in tasks]
    if not places:
        return []
    left, right = min(x for x, _ in places), max(x for x, _ in places)
    low, high = min(y for _, y in places), max(y for _, y in places)
    room = canvas.width - 2 * canvas.margin, canvas.height - 2 * canvas.margin
    # one scale for both directions, so that distances are comparable
    scale = min((size / span for size, span in zip(room, (right - left, high - low), strict=True) if span), default=0.0)
    small = 3.0 if len(tasks) > _CROWD else 4.5
    learned = 3.5 if sum(not task.get("source") for task in tasks) > _CROWD else 7.0
    return [
        Mark(
            task=printable(text(task.get("task"))),
            title=_title(task),
            x=round(canvas.width / 2 + (x - (left + right) / 2) * scale, 1),
            y=round(canvas.height / 2 - (y - (low + high) / 2) * scale, 1),
            radius=small if task.get("source") else learned,
            family=families.get(text(task.get("family")), families[_REST]),
            source=bool(task.get("source")),
        )
        for task, (x, y) in zip(tasks, places, strict=True)
    ]


def _title(task: Mapping[str, Any]) -> str:
    weak = " (weak)" if task.get("weak") else ""
    near = f": nearest {nearest_text(task)}" if task.get("nearest") else ""
    return f"{printable(text(task.get('task')))}{weak}{near}"


def nearest_text(task: Mapping[str, Any]) -> str:
    """Return the nearest tasks with their cosines."""
    return ", ".join(
        f"{printable(text(neighbour.get('task')))} {number(neighbour.get('similarity')) or 0.0:.2f}"
        for neighbour in mappings(task.get("nearest"))
    )


def _names(tasks: Sequence[Mapping[str, Any]], marks: Sequence[Mark], width_of: WidthOf, canvas: Canvas) -> list[Name]:
    """Place names without covering one another or marks: learned tasks first, then from the rim inwards.

    A learned task's name may cover marks of sources, as readers look for it.
    """
    if not marks:
        return []
    rooms = _Rooms(marks, canvas)
    middle = canvas.width / 2, canvas.height / 2
    rim = {index: -math.dist((mark.x, mark.y), middle) for index, mark in enumerate(marks)}
    order = sorted(rim, key=lambda index: (marks[index].source, rim[index], index))
    names: list[Name] = []
    for index in order[:_MOST_TRIED]:
        mark, shown = marks[index], beginning(text(tasks[index].get("task")), canvas.letters)
        width = width_of(shown, not mark.source)
        place = rooms.take(mark, width) or (None if mark.source else rooms.take(mark, width, over_sources=True))
        if place is not None:
            names.append(Name(shown, *place, mark.source))
        if len(names) == _MOST_NAMES:
            break
    return names


class _Rooms:
    """The free space for names."""

    def __init__(self, marks: Sequence[Mark], canvas: Canvas) -> None:
        import numpy as np

        self._canvas = canvas
        boxes = [_around(mark) for mark in marks]
        self._marks = np.array(boxes).reshape(-1, 4)
        self._learned = np.array([box for box, mark in zip(boxes, marks, strict=True) if not mark.source])
        self._learned = self._learned.reshape(-1, 4)
        self._names: list[Box] = []

    def take(self, mark: Mark, width: float, *, over_sources: bool = False) -> tuple[float, float] | None:
        """Return the left edge and the middle of a name next to this mark; None if all eight positions are taken."""
        import numpy as np

        marks, names = self._learned if over_sources else self._marks, np.array(self._names).reshape(-1, 4)
        far, lift = mark.radius + 4, mark.radius + _LINE / 2 + 1
        sides = ((far, 0.0), (-far - width, 0.0), (-width / 2, -lift), (-width / 2, lift))
        corners = ((far, -lift), (far, lift), (-far - width, -lift), (-far - width, lift))
        for x, y in ((mark.x + across, mark.y + up) for across, up in (*sides, *corners)):
            box = x, y - _LINE / 2, x + width, y + _LINE / 2
            if _inside(box, self._canvas) and not _meets(box, names) and not _meets(box, marks):
                self._names.append(box)
                return round(x, 1), round(y, 1)
        return None


def _around(mark: Mark) -> Box:
    x, y, radius = mark.x, mark.y, mark.radius
    return x - radius, y - radius, x + radius, y + radius


def _inside(box: Box, canvas: Canvas) -> bool:
    left, top, right, bottom = box
    return left >= 4 and top >= 4 and right <= canvas.width - 4 and bottom <= canvas.height - 4


def _meets(box: Box, others: np.ndarray) -> bool:
    """Return whether it overlaps one of the others (n, 4)."""
    left, top, right, bottom = others.T
    return bool(((box[0] < right) & (box[2] > left) & (box[1] < bottom) & (box[3] > top)).any())


def outline(shape: str, x: float, y: float, radius: float) -> list[tuple[float, float]] | None:
    """Return the corners of a mark's shape, with about the same area for all shapes; None for a circle."""
    corners = _CORNERS.get(shape)
    return [(round(x + radius * dx, 1), round(y + radius * dy, 1)) for dx, dy in corners] if corners else None


_CORNERS: Final = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "triangle": ((0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)),
    "diamond": ((0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)),
    "inverted": ((0.0, 1.25), (1.15, -0.85), (-1.15, -0.85)),
    "plus": (
        (-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4),
        (0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4),
    ),
}  # fmt: skip
