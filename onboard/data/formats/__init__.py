"""The file formats: JSONL, CSV, TSV, Parquet (plain or gzip) and Arrow, as a stream of rows; and tools' exports.

To add one: a module with a class that follows `Reader`, an entry in `source._SUFFIXES` and one in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from onboard.data.formats.arrow import ArrowReader
from onboard.data.formats.delimited import CsvReader, TsvReader
from onboard.data.formats.exports import ExportReader
from onboard.data.formats.jsonl import JsonlReader
from onboard.data.formats.parquet import ParquetReader
from onboard.data.formats.source import Format, format_of
from onboard.data.formats.table import FileProblems, Reader, Row
from onboard.data.formats.tools import Tool, tool_of
from onboard.data.formats.unreadable import RowError, UnreadableError
from onboard.data.problems import Problems

__all__ = [
    "ExportReader",
    "FileProblems",
    "Format",
    "Reader",
    "Row",
    "RowError",
    "Tool",
    "UnreadableError",
    "open_reader",
]

_READERS: Final[dict[Format, Callable[[Path, FileProblems], Reader]]] = {
    "jsonl": JsonlReader,
    "csv": CsvReader,
    "tsv": TsvReader,
    "parquet": ParquetReader,
    "arrow": ArrowReader,
}


def open_reader(path: Path, problems: FileProblems) -> Reader:
    """The reader of a file, by its suffix and by the tool that exported it; problems of single rows go to `problems`.

    Raises:
        UnreadableError: the file is missing, is not readable, or is not what its name says.
    """
    make = _READERS[format_of(path)]
    reader = make(path, problems)
    columns = reader.columns()

    def rows() -> Iterator[Mapping[str, object]]:
        silent = make(path, FileProblems(Problems(), problems.file))  # bad rows are told when they are read
        return (row.values for row in silent.rows(columns))

    tool = tool_of(columns, rows, typed=reader.typed)
    return reader if tool is None else ExportReader(reader, tool)
