"""JSON objects: one per line (JSONL), all in one array, or packed into one object by Argilla."""

from __future__ import annotations

import codecs
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from onboard.data.formats.budget import too_large
from onboard.data.formats.source import UTF8_MARK, Line, lines_of, open_bytes
from onboard.data.formats.table import Reader, Row, require_few_columns
from onboard.data.formats.tools import records_of
from onboard.data.formats.unreadable import RowError, UnreadableError
from onboard.data.limits import MAX_FILE_BYTES, MAX_LINE_BYTES

_LOOKAHEAD_ROWS: Final = 100
_HEAD_BYTES: Final = 1024
PIECE_BYTES: Final = 1 << 16
_REMEDY: Final = 'Write one object per line, like {"text": "…", "label": "…"}.'
_ARRAY_REMEDY: Final = 'Write one array of objects, like [{"text": "…", "label": "…"}, …], or one object per line.'
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_BEYOND_JSON: Final = "nests too deeply or contains a number with thousands of digits"


class _DoubledKeyError(Exception):
    """Carries the key."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object without repeated keys; the json module alone would use the last value."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _DoubledKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return fields


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)


class JsonlReader(Reader):
    """Reads JSONL, and a JSON array of objects. May return more columns than requested.

    A row's number is its line, where blank lines are skipped; in an array it is the object's position.
    """

    def columns(self) -> tuple[str, ...]:
        """The keys of the first hundred objects, in order of appearance."""
        keys: dict[str, None] = {}
        for _, row in itertools.islice(self._objects(), _LOOKAHEAD_ROWS):
            if not isinstance(row, RowError):
                keys.update(dict.fromkeys(row))
                require_few_columns(len(keys))
        return tuple(keys)

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:  # noqa: ARG002 - part of every reader
        """Stream the objects; report lines that are not objects."""
        for number, row in self._objects():
            if isinstance(row, RowError):
                self._problems.add(row.code, row.message, row.remedy, row=number)
            else:
                yield Row(number, None, row)

    def _objects(self) -> Iterator[tuple[int, dict[str, object] | RowError]]:
        with open_bytes(self._path) as stream:
            head = stream.read(_HEAD_BYTES).removeprefix(UTF8_MARK).lstrip()
        if head.partition(b"\n")[0].strip() == b"{":
            remedy = f"Convert it: jq -c . {self._path.name} > data.jsonl"
            raise UnreadableError("not_jsonl", "has JSON objects that span several lines", remedy, row=1)
        if head.startswith(b"["):
            yield from ((number, _object_of(value)) for number, value in enumerate(_array(self._path), start=1))
            return
        yield from _unpacked((line.number, _parse(line)) for line in lines_of(self._path) if _has_data(line))


def _has_data(line: Line) -> bool:
    return line.data is None or bool(line.data.strip())


def _unpacked(
    objects: Iterator[tuple[int, dict[str, object] | RowError]],
) -> Iterator[tuple[int, dict[str, object] | RowError]]:
    """Yield the objects of lines, or the records of a file of Argilla that is a single object."""
    first, second = next(objects, None), next(objects, None)
    alone = first[1] if first is not None and second is None else None
    records = None if alone is None or isinstance(alone, RowError) else records_of(alone)
    if records is not None:
        yield from ((number, dict(record)) for number, record in enumerate(records, start=1))
        return
    yield from (one for one in (first, second) if one is not None)
    yield from objects


def _parse(line: Line) -> dict[str, object] | RowError:
    if line.data is None:
        message = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
        return RowError("line_too_long", message, "Shorten the text; only its beginning is read.")
    try:
        return _object_of(_DECODER.decode(line.data.decode("utf-8")))
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {line.offset + error.start} of the file)"
        return RowError("not_utf8", message, "Save the file as UTF-8.")
    except _DoubledKeyError as error:
        return RowError("doubled_column", f"repeats the key {str(error)!r}", "Use each key once.")
    except json.JSONDecodeError as error:
        return RowError("bad_json", f"is not JSON: {error.msg} (character {error.colno})", _REMEDY)
    except (ValueError, RecursionError):
        return RowError("bad_json", _BEYOND_JSON, _REMEDY)


def _object_of(value: object) -> dict[str, object] | RowError:
    if isinstance(value, dict):
        return value
    return RowError("not_an_object", f"is {_kind_of(value)}, not a JSON object", _REMEDY)


def _array(path: Path) -> Iterator[object]:
    """Yield the values of a JSON array one after the other, in bounded memory.

    Raises:
        UnreadableError: the array is invalid; later values cannot be separated.
    """
    with open_bytes(path) as stream:
        text = _Text(stream)
        text.take("[")
        if text.next() == "]":
            raise UnreadableError("empty_file", "has no rows", "Pass a file with rows in it.")
        number = 1
        yield text.value(number)
        while text.next() != "]":
            text.take(",", row=number)
            number += 1
            yield text.value(number)
        text.take("]")
        if text.next():
            raise UnreadableError("bad_json", "continues after the end of its array", _ARRAY_REMEDY, row=number)


class _Text:
    """The unread part of a stream, decoded piece by piece."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._buffer, self._at, self._bytes = "", 0, 0

    def next(self) -> str:
        """Return the next non-blank character without consuming it; "" at the end."""
        while True:
            self._at = _BLANKS.match(self._buffer, self._at).end()  # type: ignore[union-attr]  # it always matches
            if self._at < len(self._buffer) or not self._more():
                return self._buffer[self._at : self._at + 1]

    def take(self, mark: str, row: int | None = None) -> None:
        """Consume a required mark."""
        if self.next() != mark:
            message = f"is not a valid JSON array: {mark!r} is missing" + (f" after object {row}" if row else "")
            raise UnreadableError("bad_json", message, _ARRAY_REMEDY, row=row)
        self._at += 1

    def value(self, number: int) -> object:
        """Return the next value, the array's `number`-th."""
        self.next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if len(self._buffer) - self._at > MAX_LINE_BYTES:
                    message = f"the object is longer than {MAX_LINE_BYTES >> 20} MiB"
                    raise UnreadableError("line_too_long", message, _ARRAY_REMEDY, row=number) from error
                if not self._more():
                    message = f"is not JSON: {error.msg}"
                    raise UnreadableError("bad_json", message, _ARRAY_REMEDY, row=number) from error
            except _DoubledKeyError as error:
                message = f"repeats the key {str(error)!r}"
                raise UnreadableError("doubled_column", message, "Use each key once.", row=number) from error
            except (ValueError, RecursionError) as error:
                raise UnreadableError("bad_json", _BEYOND_JSON, _ARRAY_REMEDY, row=number) from error
            else:
                self._at = end
                return value

    def _more(self) -> bool:
        data = self._stream.read(PIECE_BYTES)
        self._bytes += len(data)
        if self._bytes > MAX_FILE_BYTES:
            raise too_large(row=None)
        try:
            self._buffer, self._at = self._buffer[self._at :] + self._decoder.decode(data, final=not data), 0
        except UnicodeDecodeError as error:
            message = f"is not UTF-8 (about byte {self._bytes - len(data) + error.start} of the file)"
            raise UnreadableError("not_utf8", message, "Save the file as UTF-8.") from error
        return bool(data)


def _kind_of(value: object) -> str:
    return {list: "an array", str: "a string", type(None): "null", bool: "a boolean"}.get(type(value), "a number")
