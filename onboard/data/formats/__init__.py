"""The file formats: JSONL, CSV, TSV and Parquet, plain or gzip, read as a stream of rows.

To add one: a module with a class that follows `Reader`, an entry in `source._SUFFIXES` and one in `_READERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from onboard.data.formats.delimited import CsvReader, TsvReader
from onboard.data.formats.jsonl import JsonlReader
from onboard.data.formats.parquet import ParquetReader
from onboard.data.formats.source import Format, format_of
from onboard.data.formats.table import FileProblems, Reader, Row, RowError, UnreadableError

__all__ = ["FileProblems", "Format", "Reader", "Row", "RowError", "UnreadableError", "open_reader"]

_READERS: Final[dict[Format, Callable[[Path, FileProblems], Reader]]] = {
    "jsonl": JsonlReader,
    "csv": CsvReader,
    "tsv": TsvReader,
    "parquet": ParquetReader,
}


def open_reader(path: Path, problems: FileProblems) -> Reader:
    """The reader of a file, by its suffix; problems of single rows go to `problems`.

    Raises:
        UnreadableError: the file is missing, is not readable, or is not what its name says.
    """
    return _READERS[format_of(path)](path, problems)
