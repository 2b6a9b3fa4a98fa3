"""What every format looks like from outside: named columns and a stream of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onboard.data.formats.tools import Tool
from onboard.data.problems import Problem, Problems


class Row(NamedTuple):
    """One row of a file.

    number: from 1, as in the file (for JSONL the line; a CSV header is not a row).
    line: line on which the row starts, where that differs from `number` (CSV, TSV), else None.
    values: column to value; texts of Parquet come as bytes, so that bad UTF-8 can be told by row.
    """

    number: int
    line: int | None
    values: Mapping[str, object]


class Reader(ABC):
    """A file of one format."""

    @property
    def typed(self) -> bool:
        """Whether values have types, or all are strings (CSV, TSV)."""
        return True

    @property
    def tool(self) -> Tool | None:
        """The labelling tool that exported the file; most come from none."""
        return None

    def __init__(self, path: Path, problems: FileProblems) -> None:
        self._path = path
        self._problems = problems

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns; for JSONL the keys that the first rows use."""

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of integers that stand for names (ClassLabel), with these names; most formats have none."""
        return {}

    def kinds(self) -> Mapping[str, str]:
        """Columns that can be neither text nor label, with what they are, where the file's schema says so."""
        return {}

    @abstractmethod
    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows, with these columns at least."""


class RowError(Exception):
    """A row, or one of its values, cannot be used; the rest of the file can."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy


class UnreadableError(Exception):
    """Reading cannot go on: the rest of the file has no rows that could be told apart."""

    def __init__(
        self, code: str, message: str, remedy: str = "", *, row: int | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.row = row
        self.line = line


def refuse_doubled(header: Sequence[str], columns: Sequence[str], remedy: str) -> None:
    """Raise UnreadableError where a wanted column stands in the header more than once."""
    for name in columns:
        if header.count(name) > 1:
            raise UnreadableError("doubled_column", f"has two columns called {name!r}", remedy)


class FileProblems:
    """The problems of one file: fills in its name."""

    def __init__(self, problems: Problems, file: str) -> None:
        self._problems = problems
        self.file = file
        self.any = False  # whether this file has problems

    def add(
        self,
        code: str,
        message: str,
        remedy: str = "",
        *,
        row: int | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        """Add one problem of this file."""
        self.any = True
        self._problems.add(Problem(code, message, self.file, row, line, field, remedy))

    def add_unreadable(self, error: UnreadableError) -> None:
        """Add what ended the reading."""
        self.add(error.code, error.message, error.remedy, row=error.row, line=error.line)
