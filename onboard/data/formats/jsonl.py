"""JSONL: one JSON object per line."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from onboard.data.formats.source import Line, lines_of, open_bytes
from onboard.data.formats.table import Reader, Row, RowError, UnreadableError
from onboard.data.limits import MAX_LINE_BYTES

_LOOKAHEAD_ROWS: Final = 100
_HEAD_BYTES: Final = 1024
_REMEDY: Final = 'Write one object per line, like {"text": "…", "label": "…"}.'


class _DoubledKeyError(Exception):
    """Carries the key."""


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object; the json module alone takes the last of two values for one key."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _DoubledKeyError(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return fields


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object)


class JsonlReader(Reader):
    """Reads JSONL. A row's number is its line; blank lines are passed over. Columns beyond those asked for come too."""

    def columns(self) -> tuple[str, ...]:
        """The keys of the first hundred objects, in order of appearance."""
        keys: dict[str, None] = {}
        for line in itertools.islice(self._lines(), _LOOKAHEAD_ROWS):
            try:
                keys.update(dict.fromkeys(_parse(line)))
            except RowError:
                continue
        return tuple(keys)

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:  # noqa: ARG002 - part of every reader
        """Stream the objects; lines that are none are reported."""
        for line in self._lines():
            try:
                yield Row(line.number, None, _parse(line))
            except RowError as error:
                self._problems.add(error.code, error.message, error.remedy, row=line.number)

    def _lines(self) -> Iterator[Line]:
        _refuse_whole_document(self._path)
        for line in lines_of(self._path):
            if line.data is None or line.data.strip():
                yield line


def _parse(line: Line) -> dict[str, object]:
    if line.data is None:
        message = f"the line is longer than {MAX_LINE_BYTES >> 20} MiB"
        raise RowError("line_too_long", message, "Shorten the text; only its beginning is ever read.")
    try:
        value = _DECODER.decode(line.data.decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {line.offset + error.start} of the file)"
        raise RowError("not_utf8", message, "Save the file as UTF-8.") from error
    except _DoubledKeyError as error:
        message = f"gives the key {str(error)!r} twice"
        raise RowError("doubled_column", message, "Give every key once.") from error
    except json.JSONDecodeError as error:
        raise RowError("bad_json", f"is not JSON: {error.msg} (character {error.colno})", _REMEDY) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; thousands of open brackets
        raise RowError("bad_json", "nests too deep or holds a number of thousands of digits", _REMEDY) from error
    if not isinstance(value, dict):
        raise RowError("not_an_object", f"is {_kind_of(value)}, not a JSON object", _REMEDY)
    return value


def _refuse_whole_document(path: Path) -> None:
    with open_bytes(path) as stream:
        head = stream.read(_HEAD_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"["):
        remedy = f"Convert it: jq -c '.[]' {path.name} > data.jsonl"
        raise UnreadableError("not_jsonl", "is one JSON array, not one object per line", remedy, row=1)
    if head.partition(b"\n")[0].strip() == b"{":
        remedy = f"Convert it: jq -c . {path.name} > data.jsonl"
        raise UnreadableError("not_jsonl", "spreads its JSON objects over several lines", remedy, row=1)


def _kind_of(value: object) -> str:
    return {list: "an array", str: "a string", type(None): "null", bool: "a boolean"}.get(type(value), "a number")
