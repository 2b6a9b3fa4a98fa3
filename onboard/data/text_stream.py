"""Stream the texts of a file: every row in order, valid or not, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from onboard.data.formats import FileProblems, UnreadableError, open_reader
from onboard.data.problems import Problem, Problems
from onboard.data.rows import checked_texts, telling
from onboard.data.texts import OWN_NAMES, TextRow, text_columns

_MOST_PENDING: Final = 100_000  # invalid rows in memory until a valid one follows


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row without a valid text.

    Args:
        file: name in errors.
        row: its number from 1, as in the file (for JSONL the line; a CSV header is not a row).
        line: line of a CSV or TSV file on which it starts.
        code: short stable name of the problem, such as `empty_text`.
        message, remedy: readable description and remedy.
    """

    file: str
    row: int
    line: int | None
    code: str
    message: str
    remedy: str

    def to_json(self) -> dict[str, Any]:
        """Return its facts, without missing ones."""
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}


class _Pending(Problems):
    """Problems of rows that were not yet passed on, and problems of the whole file."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: dict[int, list[Problem]] = {}

    def add(self, problem: Problem) -> None:
        """Keep a problem until its row is passed on."""
        if problem.row is None:
            super().add(problem)
            return
        self._rows.setdefault(problem.row, []).append(problem)
        if len(self._rows) > _MOST_PENDING:
            message = f"has {_MOST_PENDING:,} rows one after the other that cannot be read"
            raise UnreadableError("bad_rows", f"{message}, the last one: {problem.message}", problem.remedy)

    def up_to(self, number: int | None) -> Iterator[BadRow]:
        """Yield the invalid rows up to that number, or all remaining ones, once each."""
        for row in sorted(row for row in self._rows if number is None or row <= number):
            first, *others = self._rows.pop(row)
            message = "; ".join([str(first.message), *(other.message for other in others)])
            field = "" if first.field is None else f"field {first.field}: "
            yield BadRow(first.file, row, first.line, first.code, f"{field}{message}", first.remedy)


def stream_texts(
    path: Path, text_fields: tuple[str, ...] = (), *, shown: str | None = None, may_be_empty: bool = False
) -> Iterator[TextRow | BadRow]:
    """Yield every row of a file once, in order, without blank lines.

    Args:
        text_fields: columns of the text or of the two texts; empty means the usual names.
        may_be_empty: accept a file without rows, such as a shard, instead of raising an error.

    Raises:
        DatasetError: the file cannot be read to its end, has no rows, or has no text column.
    """
    name = shown or str(path)
    pending, ended = _Pending(), Problems()
    with telling(path, FileProblems(ended, name)):
        yield from _rows(path, text_fields, FileProblems(pending, name), pending)
    if not (may_be_empty and set(ended.counts) == {"empty_file"}):
        ended.raise_if_any()


def _rows(
    path: Path, text_fields: tuple[str, ...], problems: FileProblems, pending: _Pending
) -> Iterator[TextRow | BadRow]:
    reader = open_reader(path, problems)
    columns, fields = text_columns(reader, text_fields)
    names = OWN_NAMES.get(len(fields), ())
    seen = False
    for row in reader.rows(columns):
        texts = checked_texts(row, fields, problems)
        pending.raise_if_any()
        bad = list(pending.up_to(row.number))
        yield from bad
        seen = True
        if not bad or bad[-1].row != row.number:
            yield TextRow(dict(zip(names, map(str, texts), strict=True)), dict(row.values))
    for bad_row in pending.up_to(None):
        yield bad_row
        seen = True
    pending.raise_if_any()
    if not seen:
        raise UnreadableError("empty_file", "has no rows", 'Each row needs "text", or "text_a" and "text_b".')
