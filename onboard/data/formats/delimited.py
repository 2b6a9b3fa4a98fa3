"""CSV and TSV: a header with column names, then one row per record. All values are strings.

CSV follows RFC 4180: quotes are doubled inside quoted texts, which may contain line breaks. If the header contains no
comma, the separator is `;` or a tab; a first line `sep=` overrides it. TSV has no quoting: a tab always separates and a
line break always ends the row, so stray quotes in sentences are harmless. A field that is quoted as a whole, with
doubled quotes inside, is unquoted.
"""

from __future__ import annotations

import csv
import itertools
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Final

from onboard.data.formats.source import lines_of
from onboard.data.formats.table import Reader, Row, distinct_names, doubled_names
from onboard.data.formats.unreadable import UnreadableError
from onboard.data.limits import MAX_LINE_BYTES

_QUOTE_REMEDY: Final = (
    'Quote every text that contains a separator or a quote, and double the quotes inside: "He said ""no""".'
)
_TSV_REMEDY: Final = "Texts in TSV cannot contain tabs or line breaks: save the file as CSV or JSONL."
_HEADER_REMEDY: Final = "The first row must name each column once: text,label."
_REPEATED_REMEDY: Final = "Delete the line. It comes from joining files with their headers."
_HEADER_QUOTE_REMEDY: Final = "Close every quote of the first line, with no blank between a quote and a separator."
_SEPARATORS: Final = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_NAMED_SEPARATOR: Final = re.compile(r'"?sep=([,;\t|])"?\s*', re.IGNORECASE)
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*"')
_WHOLLY_QUOTED: Final = re.compile(r'"((?:[^"]|"")*)"')


class _DelimitedReader(Reader):
    """Common parts of CSV and TSV: decoding by line, the header, and the length of rows."""

    _column_remedy: str
    _row = 0  # rows read so far; the header is row 0

    @property
    def typed(self) -> bool:
        """Always False."""
        return False

    def columns(self) -> tuple[str, ...]:
        """The distinct names in the header."""
        return distinct_names(self._header())

    def doubled(self) -> frozenset[str]:
        """Names that occur more than once in the header."""
        return doubled_names(self._header())

    def _header(self) -> tuple[str, ...]:
        for _, fields in self._records(silent=True):
            return tuple(name.strip() for name in fields)
        raise UnreadableError("empty_file", "has no rows", _HEADER_REMEDY)

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:  # noqa: ARG002 - part of every reader
        """Stream the rows; report those with more or fewer fields than the header, and skip blank ones."""
        names: list[str] = []
        header: tuple[str, ...] = ()
        self._row = 0
        for line, fields in self._records(silent=False):
            if not header:
                names = [name.strip() for name in fields]
                header = distinct_names(names)
                continue
            self._row += 1
            if len(fields) > 1 and not any(map(str.strip, fields)):  # spreadsheets save them at the end
                self._problems.blank_rows += 1
                continue
            if fields[0].strip() == names[0] and len(names) > 1 and [field.strip() for field in fields] == names:
                self._problems.add("repeated_header", "repeats the header", _REPEATED_REMEDY, row=self._row, line=line)
                continue
            if len(fields) != len(header):
                message = f"has {len(fields)} fields where the header has {len(header)}"
                self._problems.add("field_count", message, self._column_remedy, row=self._row, line=line)
                continue
            yield Row(self._row, line, dict(zip(header, fields, strict=True)))

    @abstractmethod
    def _records(self, *, silent: bool) -> Iterator[tuple[int, list[str]]]:
        """Yield the start and the fields of each record, the header first; `silent` reports no problems."""

    def _decoded_lines(self, *, silent: bool) -> Iterator[str]:
        """Yield the lines with their line feed. Invalid bytes are reported and replaced, so that rows stay separate."""
        for line in lines_of(self._path):
            if line.data is None:
                message = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB; reading stopped here"
                remedy = "Shorten the text, or look for a line break or quote that is missing."
                raise UnreadableError("line_too_long", message, remedy, row=self._row + 1, line=line.number)
            try:
                yield line.data.decode("utf-8") + "\n"
            except UnicodeDecodeError as error:
                if not silent:
                    message = f"is not UTF-8 (byte {line.offset + error.start} of the file)"
                    row = self._row + 1 if line.number > 1 else None
                    self._problems.add("not_utf8", message, "Save the file as UTF-8.", row=row, line=line.number)
                yield line.data.decode("utf-8", "replace") + "\n"


class CsvReader(_DelimitedReader):
    """Reads CSV, strictly: an unclosed quote is reported and does not swallow the rest silently.

    A first line `sep=;`, as Excel reads and writes it, sets the separator.
    """

    _column_remedy = _QUOTE_REMEDY

    def _records(self, *, silent: bool) -> Iterator[tuple[int, list[str]]]:
        lines = self._decoded_lines(silent=silent)
        first = next(lines, "")
        named = _NAMED_SEPARATOR.fullmatch(first)
        mark = named[1] if named else self._separator(first)
        reader = csv.reader(lines if named else itertools.chain([first], lines), delimiter=mark, strict=True)
        skipped, header = (1 if named else 0), True
        while True:
            start = skipped + reader.line_num + 1
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if header:
                    message = f"has a header that cannot be read: {_explain(error)}"
                    raise UnreadableError("bad_csv", message, _HEADER_QUOTE_REMEDY, line=start) from error
                self._row += 1
                if not silent:
                    self._problems.add("bad_csv", _explain(error), _QUOTE_REMEDY, row=self._row, line=start)
                continue
            if fields and (len(fields) > 1 or not fields[0].isspace()):  # quoted "" is a row, a blank line is not
                header = False
                yield start, fields

    def _separator(self, header: str) -> str:
        """Return the first of comma, `;` and tab that occurs in the header outside quotes.

        Raises:
            UnreadableError: another one occurs as well, and the first row has a different number of columns.
        """
        bare = _QUOTED.sub("", header)
        mark, *others = [mark for mark in _SEPARATORS if mark in bare] or [","]
        if others:
            names, *rows = itertools.islice(csv.reader(self._decoded_lines(silent=True), delimiter=mark), 2)
            if rows and len(rows[0]) != len(names):
                message = (
                    f"is read with {_SEPARATORS[mark]} between its columns, as one stands in the header: "
                    f"that has {len(names)} columns, the first row {len(rows[0])}"
                )
                remedy = (
                    f"If it is {_SEPARATORS[others[0]]}: write sep={others[0]} as the first line, or quote the names."
                )
                raise UnreadableError("separator", message, remedy, line=1)
        return mark


class TsvReader(_DelimitedReader):
    """Reads TSV, literally."""

    _column_remedy = _TSV_REMEDY

    def _records(self, *, silent: bool) -> Iterator[tuple[int, list[str]]]:
        for number, line in enumerate(self._decoded_lines(silent=silent), start=1):
            if line.strip(" \r\n"):  # a line of tabs is a row, even if a blank one
                yield number, [_unquoted(field) for field in line.rstrip("\r\n").split("\t")]


def _unquoted(field: str) -> str:
    match = _WHOLLY_QUOTED.fullmatch(field)
    return match[1].replace('""', '"') if match else field


def _explain(error: csv.Error) -> str:
    text = str(error)
    if "end of data" in text or "field limit" in text:
        return "a quote is opened and never closed"
    if "expected after" in text:
        return "text follows a closing quote"
    if "new-line character" in text:
        return "a line ends in a carriage return without a line feed"
    return f"is not CSV: {text}"
