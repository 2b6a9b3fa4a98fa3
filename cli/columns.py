"""Columns of figures: a table on a wide terminal, otherwise one paragraph per row, so that nothing is cut off.

Without a terminal, the output is plain columns of any width, one line per row (for grep and logs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

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
_MEBIBYTE: Final = 2**20
_WIDE: Final = 1000  # characters; without a terminal, nothing is cut or wrapped
_GAP: Final = 2  # spaces between columns
_FOLDED: Final = 24  # minimum characters of a folded column

Cell = str | Sequence[str]


class Columns:
    """Rows under heads. Outside a table, the lines of a cell are joined with commas.

    Args:
        folded: heads of the columns with lines that may be wrapped on a narrow terminal.
    """

    def __init__(self, *heads: str, folded: Sequence[str] = ()) -> None:
        self._heads = heads
        self._folded = folded
        self._rows: list[list[list[str]]] = []

    def add(self, *cells: Cell) -> None:
        """Add a row. Each cell is a text, or a list of lines."""
        self._rows.append([[line for line in ([cell] if isinstance(cell, str) else cell) if line] for cell in cells])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich import box

        if options.no_wrap:  # without a terminal; colors may be requested there, too
            options = options.update(width=_WIDE, no_wrap=True)
            yield from console.render(self._table(None, ", "), options)  # type: ignore[misc]  # segments are fine here
        elif self._width() <= options.max_width:
            yield self._table(box.SIMPLE_HEAD, "\n")
        else:
            yield from (self._paragraph(row) for row in self._rows)

    def _width(self) -> int:
        """Return the width that a table needs to show everything."""
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
        """Return a row as a paragraph: the first cell, then the other cells that are not empty, each after its head."""
        from rich.console import Group
        from rich.padding import Padding
        from rich.text import Text

        first, *further = zip(self._heads, row, strict=True)
        parts = (
            Text.assemble((f"{head} " if head else "", "dim"), _cell(cell, ", ")) for head, cell in further if cell
        )
        return Group(Text(", ".join(first[1]), "bold"), Padding(Text("; ").join(parts), (0, 0, 0, 2)))


def _cell(lines: Sequence[str], separator: str) -> Text:
    """Return a cell as plain text: names may contain brackets, which rich would read as markup."""
    from rich.text import Text

    return Text(separator).join(Text(line, STYLES.get(line, "")) for line in lines)


def age(seconds: float | None) -> str:
    """Format a duration; empty for None."""
    return "" if seconds is None else seconds_text(seconds)


def pair(first: float | None, second: float | None) -> str:
    """Format two durations, such as p50 and p95, with two digits each; empty for None."""
    return "" if first is None or second is None else f"{rough_text(first)} / {rough_text(second)}"


def mebibytes(count: float | None) -> str:
    """Format bytes in MiB, as nvidia-smi does."""
    return "" if count is None else f"{count / _MEBIBYTE:,.0f} MiB"
