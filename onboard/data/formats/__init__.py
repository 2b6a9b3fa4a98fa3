"""File formats: JSONL, CSV, TSV, Parquet (plain or gzip), Arrow and exports of labeling tools, as streams of rows.

To add one, write a module with a class that follows `Reader`, and add entries to `source._SUFFIXES` and `_READERS`.
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
    """Return the reader of a file, by its suffix and the tool that exported it; problems of rows go to `problems`.

    Raises:
        UnreadableError: the file is missing, unreadable, or does not match its suffix.
    """
    make = _READERS[format_of(path)]
    reader = make(path, problems)
    columns = reader.columns()

    def rows() -> Iterator[Mapping[str, object]]:
        silent = make(path, FileProblems(Problems(), problems.file))  # invalid rows are reported when they are read
        return (row.values for row in silent.rows(columns))

    tool = tool_of(columns, rows, typed=reader.typed)
    return reader if tool is None else ExportReader(reader, tool)
