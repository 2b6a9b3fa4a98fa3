"""Read the headers of a Parquet file's pages before any is decompressed.

The metadata at the end of a file contain sizes, too, but readers do not enforce them. A page's header contains its
decompressed size, which pyarrow enforces.

The format: https://parquet.apache.org/docs/file-format/, `parquet.thrift` in Thrift's compact protocol.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple

from onboard.data.formats.budget import Budget
from onboard.data.formats.unreadable import UnreadableError

_HEADER_BYTES: Final = 1 << 10  # most headers take less than a hundred; statistics may make them long
_MOST_HEADER_BYTES: Final = 16 << 20
_MOST_DEPTH: Final = 16
_BATCH_ROWS: Final = 4096
_BATCH_BYTES: Final = 64 << 20
_OF_DICTIONARY: Final = -1  # for pages with a dictionary
_DELTA_BYTE_ARRAY: Final = 7  # a text is stored as a difference to the previous one
_READ_AS_DICTIONARY: Final = frozenset({0, 2, 8, _OF_DICTIONARY})  # plain ones and indices
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, 12  # types of fields

_Struct = dict[int, Any]


class Leaf(NamedTuple):
    """A stored column: its index, its path, and whether its values are texts or bytes."""

    place: int
    path: str
    is_text: bool


class _Page(NamedTuple):
    size: int
    stored: int
    values: int
    encoding: int


class Bounded(NamedTuple):
    """How a file may be read.

    Args:
        dictionaries: texts to read as a dictionary that rows share.
        batch_rows: maximum number of rows to decode at once.
    """

    budget: Budget
    dictionaries: list[str]
    batch_rows: int


def require_bounded(stream: BinaryIO, metadata: Any, leaves: list[Leaf]) -> Bounded:
    """Count the declared content of a file's columns.

    Args:
        metadata: from pyarrow's reader.
        leaves: the columns that will be read.

    Raises:
        UnreadableError: they contain more than allowed, or do not declare how much.
    """
    budget = Budget(stream.seek(0, os.SEEK_END))
    budget.take_rows(metadata.num_rows)
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    dictionaries: list[str] = []
    most = 1  # bytes of one value
    for leaf in leaves:
        encodings, shared = set(), 1
        for group in groups:
            for page in _pages(stream, group.column(leaf.place)):
                budget.take_stored(page.stored)
                budget.take_values(page.values)
                encodings.add(page.encoding)
                if page.encoding in (_OF_DICTIONARY, _DELTA_BYTE_ARRAY):
                    shared = max(shared, page.stored)
        if leaf.is_text and encodings <= _READ_AS_DICTIONARY:
            dictionaries.append(leaf.path)
        else:
            most = max(most, shared)
    return Bounded(budget, dictionaries, max(1, min(_BATCH_ROWS, _BATCH_BYTES // most)))


def _pages(stream: BinaryIO, chunk: Any) -> Iterator[_Page]:
    at = min((offset for offset in (chunk.dictionary_page_offset, chunk.data_page_offset) if offset), default=0)
    end = at + chunk.total_compressed_size
    seen = 0
    while seen < chunk.num_values and at < end:
        page, length = _header(stream, at)
        yield page
        seen += page.values
        at += length + page.size


def _header(stream: BinaryIO, at: int) -> tuple[_Page, int]:
    for limit in (_HEADER_BYTES, _MOST_HEADER_BYTES) if at > 0 else ():
        stream.seek(at)
        data = stream.read(limit)
        try:
            fields, length = _struct(data, 0, 0)
        except IndexError:
            if len(data) < limit:
                break
            continue
        header: _Struct = next((part for part in (fields.get(5), fields.get(8)) if isinstance(part, dict)), {})
        size, stored, values = _number(fields, 3, -1), _number(fields, 2, -1), _number(header, 1, 0)
        if min(size, stored, values) < 0:
            break
        encoding = _number(header, 2 if 5 in fields else 4, 0) if header else _OF_DICTIONARY
        return _Page(size, stored, values, encoding), length
    raise UnreadableError("bad_parquet", f"has no page at byte {at}, where one should be", "Write the file again.")


def _number(fields: _Struct, number: int, default: int) -> int:
    """Return a number of a structure; -1 if the field has another type."""
    value = fields.get(number, default)
    return value if isinstance(value, int) else -1


def _struct(data: bytes, at: int, depth: int) -> tuple[_Struct, int]:
    """Return the numbers and structures by field, and the end offset."""
    if depth > _MOST_DEPTH:
        raise IndexError
    fields: _Struct = {}
    number = 0
    while (head := data[at]) != 0:
        at += 1
        kind, delta = head & 15, head >> 4
        if delta:
            number += delta
        else:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, kind, depth)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _BOOLEANS:
        return None, at
    if kind == _BYTE:
        return None, at + 1
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == _DOUBLE:
        return None, at + 8
    if kind == _BINARY:
        length, at = _varint(data, at)
        return None, at + length
    if kind == _STRUCT:
        return _struct(data, at, depth + 1)
    raise IndexError  # lists and maps do not occur in page headers


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise IndexError
