"""What every format looks like from outside: named columns and a stream of rows."""

from __future__ import annotations

import itertools
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
        """Distinct names of the columns; for JSONL the keys that the first rows use."""

    def doubled(self) -> frozenset[str]:
        """Names that more than one column of the file has; all but the first go by another in `columns`."""
        return frozenset()

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Columns of integers that stand for names (ClassLabel), with these names; most formats have none."""
        return {}

    def kinds(self) -> Mapping[str, str]:
        """Columns that can be neither text nor label, with what they are, where the file's schema says so."""
        return {}

    @abstractmethod
    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows, with these columns at least."""


def distinct_names(header: Sequence[str]) -> tuple[str, ...]:
    """The names of a header, each once: `a, a` → `a, a_2`, and `column_3` for the third column if it has none.

    Raises:
        UnreadableError: there are more columns than a file may have.
    """
    require_few_columns(len(header))
    taken = set(header)
    seen: set[str] = set()
    names: list[str] = []
    for place, name in enumerate(header, start=1):
        stem = name or f"column_{place}"
        numbered = (f"{stem}_{number}" for number in itertools.count(2))
        free = (other for other in itertools.chain([stem], numbered) if other not in seen)
        names.append(next(other for other in free if other == name or other not in taken))
        seen.add(names[-1])
    return tuple(names)


def require_few_columns(count: int) -> None:
    """Raise UnreadableError where there are more columns than a file may have."""
    if count > MAX_COLUMNS:
        message = f"has {count:,} columns; the limit is {MAX_COLUMNS:,}"
        raise UnreadableError("too_many_columns", message, "Pass the text and the label alone.")


def doubled_names(header: Sequence[str]) -> frozenset[str]:
    """The names that a header has more than once."""
    return frozenset(name for name, count in Counter(header).items() if count > 1)


class FileProblems:
    """The problems of one file: fills in its name."""

    def __init__(self, problems: Problems, file: str) -> None:
        self._problems = problems
        self.file = file
        self.any = False  # whether this file has problems
        self.blank_rows = 0  # rows of separators alone, which are skipped

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
