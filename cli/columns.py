"""Columns of figures: a table where the terminal is wide enough, else a paragraph per row, so that nothing is cut off.

Where no terminal is they are bare columns of whatever width, one line per row (for grep and for logs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from onboard.domain.counting import counted, size_text
from onboard.domain.moment import rough_text, seconds_text

if TYPE_CHECKING:
    from rich.box import Box
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

UNKNOWN: Final = "unknown"
STYLES: Final = {
    "ok": "green", "wrong": "red",
    "lost": "bold red", "faulty": "bold red", "none": "bold red",
    "paused": "yellow", "draining": "yellow", "starting": "yellow",
}  # fmt: skip
_WIDE: Final = 1000  # characters; nothing is cut or wrapped where no terminal is
_GAP: Final = 2  # blanks between columns
_FOLDED: Final = 24  # characters that a folded column needs at least

Cell = str | Sequence[str]


def limits_text(facts: Mapping[str, Any]) -> str:
    """The limits of a token or an owner: "20 jobs, 1 GB"; empty without any. Older services do not say."""
    jobs, size = facts.get("max_jobs"), facts.get("max_bytes")
    limits = [] if jobs is None else [counted(jobs, "job")]
    return ", ".join(limits if size is None else [*limits, size_text(size)])


class Columns:
    """Rows with heads. Outside of tables, a cell of several lines becomes one line with commas.

    Args:
        folded: heads of the columns whose lines may be broken on narrow terminals.
    """

    def __init__(self, *heads: str, folded: Sequence[str] = ()) -> None:
        self._heads = heads
        self._folded = folded
        self._rows: list[list[list[str]]] = []

    def add(self, *cells: Cell) -> None:
        """One row; a cell is a text, or its lines."""
        self._rows.append([[line for line in ([cell] if isinstance(cell, str) else cell) if line] for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich import box

        if options.no_wrap:  # printed without a terminal; colors may be forced there as well
            options = options.update(width=_WIDE, no_wrap=True)
            yield from console.render(self._table(None, ", "), options)  # type: ignore[misc]  # segments are fine here
        elif self._width() <= options.max_width:
            yield self._table(box.SIMPLE_HEAD, "\n")
        else:
            yield from (self._paragraph(row) for row in self._rows)

    def _width(self) -> int:
        """How wide a table has to be for everything to be read."""
        from rich.cells import cell_len

        widths = [cell_len(head) for head in self._heads]
        for row in self._rows:
            for place, cell in enumerate(row):
                width = max(map(cell_len, cell), default=0)
                if self._heads[place] in self._folded:
                    width = min(width, _FOLDED)
                widths[place] = max(widths[place], width)
        return sum(widths) + _GAP * (len(widths) - 1)

    def _table(self, box: Box | None, separator: str) -> Table:
        from rich.table import Column, Table

        heads = (Column(head, no_wrap=head not in self._folded) for head in self._heads)
        table = Table(*heads, box=box, padding=(0, _GAP - (box is not None), 0, 0), pad_edge=False, show_edge=False)
        for row in self._rows:
            table.add_row(*(_cell(cell, separator) for cell in row))
        return table

    def _paragraph(self, row: Sequence[Sequence[str]]) -> RenderableType:
        """The first cell, and below it the others that are not empty, each after its head."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        first, *others = zip(self._heads, row, strict=True)
        parts = (Text.assemble((f"{head} " if head else "", "dim"), _cell(cell, ", ")) for head, cell in others if cell)
        return Group(Text(", ".join(first[1]), "bold"), Padding(Text("; ").join(parts), (0, 0, 0, 2)))


def _cell(lines: Sequence[str], separator: str) -> Text:
    """Texts only: a name may hold brackets, which rich would take for markup."""
    from rich.text import Text

    return Text(separator).join(Text(line, STYLES.get(line, "")) for line in lines)


def age(seconds: float | None) -> str:
    """A duration, or nothing."""
    return "" if seconds is None else seconds_text(seconds)


def pair(first: float | None, second: float | None) -> str:
    """Two durations such as p50 and p95 in two digits each, or nothing."""
    return "" if first is None or second is None else f"{rough_text(first)} / {rough_text(second)}"
