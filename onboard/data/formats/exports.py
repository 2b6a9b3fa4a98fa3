"""An export of a labelling tool as a file of rows: its texts and its questions are columns side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onboard.data.formats.table import Reader, Row
from onboard.data.formats.tools import Tool


class ExportReader(Reader):
    """Reads what another reader reads, row by row flat."""

    def __init__(self, reader: Reader, tool: Tool) -> None:
        self._reader = reader
        self._tool = tool

    @property
    def typed(self) -> bool:
        """Whether values have types."""
        return self._reader.typed

    @property
    def tool(self) -> Tool:
        """Whose export it is."""
        return self._tool

    def columns(self) -> tuple[str, ...]:
        """The texts and whatever else was imported into the tool, and its questions."""
        return self._tool.columns

    def doubled(self) -> frozenset[str]:
        """As of the file."""
        return self._reader.doubled()

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """As of the file."""
        return self._reader.class_names()

    def kinds(self) -> Mapping[str, str]:
        """As of the file, but for its questions."""
        return {name: kind for name, kind in self._reader.kinds().items() if name not in self._tool.questions}

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows; a question is what `Tool.answers` understands."""
        names = set(columns)
        questions = [question for question in self._tool.questions if question in names]
        for row in self._reader.rows(self._tool.sources(columns)):
            yield row._replace(values=self._tool.flat(row.values, questions))
