"""The interface of all formats: named columns and a stream of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from onboard.data.formats.tools import Tool
from onboard.data.formats.unreadable import UnreadableError
from onboard.data.limits import MAX_COLUMNS
from onboard.data.problems import Problem, Problems


class Row(NamedTuple):
    """A row of a file.

    number: from 1, as in the file (for JSONL the line; a CSV header is not a row). line: line on which the row starts,
    if it differs from `number` (CSV, TSV), else None. values: value by column; texts of Parquet are bytes, so that
    invalid UTF-8 can be reported by row.
    """

    number: int
    line: int | None
    values: Mapping[str, object]


class Reader(ABC):
    """Reader of a file of one format."""

    @property
    def typed(self) -> bool:
        """Whether values have types, or all are strings (CSV, TSV)."""
        return True

    @property
    def tool(self) -> Tool | None:
        """The labeling tool that exported the file; None for most files."""
        return None

    def __init__(self, path: Path, problems: FileProblems) -> None:
        self._path = path
        self._problems = problems

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Distinct names of the columns; for JSONL, the keys of the first rows."""

    def doubled(self) -> frozenset[str]:
        """Names of more than one column of the file; all but the first have another name in `columns`."""
        return frozenset()

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of integers that represent names (ClassLabel), with these names; empty for most formats."""
        return {}

    def kinds(self) -> Mapping[str, str]:
        """Columns that can be neither text nor label according to the file's schema, with their type."""
        return {}

    @abstractmethod
    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows, with at least these columns."""


def distinct_names(header: Sequence[str]) -> tuple[str, ...]:
    """Make the names of a header distinct: `a, a` → `a, a_2`, and `column_3` for a third column without a name.

    Raises:
        UnreadableError: there are too many columns.
    """
    require_few_columns(len(header))
    taken, seen = set(header), set[str]()
    numbers: dict[str, int] = {}  # the next one to try, by stem
    names: list[str] = []
    for place, name in enumerate(header, start=1):
        stem = name or f"column_{place}"
        distinct = stem
        while distinct in seen or (distinct != name and distinct in taken):
            numbers[stem] = numbers.get(stem, 1) + 1
            distinct = f"{stem}_{numbers[stem]}"
        names.append(distinct)
        seen.add(distinct)
    return tuple(names)


def require_few_columns(count: int) -> None:
    """Raise UnreadableError if there are too many columns."""
    if count > MAX_COLUMNS:
        message = f"has {count:,} columns; the limit is {MAX_COLUMNS:,}"
        raise UnreadableError("too_many_columns", message, "Pass only the text and the label.")


def doubled_names(header: Sequence[str]) -> frozenset[str]:
    """Return the names that occur more than once in a header."""
    return frozenset(name for name, count in Counter(header).items() if count > 1)


class FileProblems:
    """The problems of one file; fills in its name."""

    def __init__(self, problems: Problems, file: str) -> None:
        self._problems = problems
        self.file = file
        self.any = False  # whether this file has problems
        self.blank_rows = 0  # rows of separators only, which are skipped

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
        """Add a problem of this file."""
        self.any = True
        self._problems.add(Problem(code, message, self.file, row, line, field, remedy))

    def add_unreadable(self, error: UnreadableError) -> None:
        """Add the error that ended the reading."""
        self.add(error.code, error.message, error.remedy, row=error.row, line=error.line)
