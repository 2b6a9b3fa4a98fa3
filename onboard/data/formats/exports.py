"""An export of a labeling tool as a file of rows, with columns for its texts and questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onboard.data.formats.table import Reader, Row
from onboard.data.formats.tools import Tool


class ExportReader(Reader):
    """Flattens the rows of another reader."""

    def __init__(self, reader: Reader, tool: Tool) -> None:
        self._reader = reader
        self._tool = tool

    @property
    def typed(self) -> bool:
        """Whether values have types."""
        return self._reader.typed

    @property
    def tool(self) -> Tool:
        """The tool that exported the file."""
        return self._tool

    def columns(self) -> tuple[str, ...]:
        """The texts, other imported columns, and the questions."""
        return self._tool.columns

    def doubled(self) -> frozenset[str]:
        """See the file's reader."""
        return self._reader.doubled()

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """See the file's reader."""
        return self._reader.class_names()

    def kinds(self) -> Mapping[str, str]:
        """See the file's reader; without the questions."""
        return {name: kind for name, kind in self._reader.kinds().items() if name not in self._tool.questions}

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows; `Tool.answers` interprets the questions."""
        names = set(columns)
        questions = [question for question in self._tool.questions if question in names]
        for row in self._reader.rows(self._tool.sources(columns)):
            yield row._replace(values=self._tool.flat(row.values, questions))
