"""Read the metadata of an Arrow file's batches before any is decoded.

pyarrow decompresses whole batches. The metadata of a batch comes first and contains its numbers of rows and values;
each compressed buffer begins with its decompressed size, which pyarrow enforces.

The formats: https://arrow.apache.org/docs/format/Columnar.html, flatbuffers by `Message.fbs` and `File.fbs`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

from onboard.data.formats.budget import Budget
from onboard.data.formats.unreadable import UnreadableError

FILE_MAGIC: Final = b"ARROW1"
_MOST_METADATA_BYTES: Final = 64 << 20
_CONTINUED: Final = -1  # the mark before the length of a message
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
_NODE, _BUFFER, _BLOCK = struct.Struct("<qq"), struct.Struct("<qq"), struct.Struct("<qi4xq")
_COMPRESSED: Final = struct.Struct("<q")  # decompressed size of a buffer; -1 if it is not compressed


class _Table(NamedTuple):
    """A flatbuffer table; a vtable before it locates its fields."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> _Table:
        (at,) = struct.unpack_from("<I", data)
        return cls(data, at)

    def number(self, slot: int, layout: str) -> int:
        """Return a number; 0 if it is omitted."""
        at = self._field(slot)
        return 0 if at is None else int(struct.unpack_from(f"<{layout}", self.data, at)[0])

    def table(self, slot: int) -> _Table | None:
        """Return a nested table."""
        at = self._field(slot)
        return None if at is None else _Table(self.data, at + self._unsigned(at))

    def structs(self, slot: int, layout: struct.Struct) -> Iterator[tuple[int, ...]]:
        """Yield the structures of a vector."""
        at = self._field(slot)
        if at is None:
            return iter(())
        start = at + self._unsigned(at)
        end = start + 4 + self._unsigned(start) * layout.size
        if end > len(self.data):
            raise struct.error("a vector continues after the end")
        return layout.iter_unpack(memoryview(self.data)[start + 4 : end])

    def _field(self, slot: int) -> int | None:
        (back,) = struct.unpack_from("<i", self.data, self.at)
        fields = self.at - back
        if fields < 0:
            raise struct.error("a table begins before the start")
        (size,) = struct.unpack_from("<H", self.data, fields)
        entry = 4 + 2 * slot
        if entry + 2 > size:
            return None
        (offset,) = struct.unpack_from("<H", self.data, fields + entry)
        return self.at + offset if offset else None

    def _unsigned(self, at: int) -> int:
        return int(struct.unpack_from("<I", self.data, at)[0])


def require_bounded(stream: BinaryIO) -> Budget:
    """Count the declared content of an Arrow file or stream, and return the remaining budget.

    Raises:
        UnreadableError: it contains more than allowed, or does not declare how much.
    """
    size = stream.seek(0, os.SEEK_END)
    budget = Budget(size)
    stream.seek(0)
    try:
        if stream.read(len(FILE_MAGIC)) == FILE_MAGIC:
            for at in _blocks(stream, size):
                _count(stream, at, size, budget)
        else:
            at = 0
            while at < size and (end := _count(stream, at, size, budget)):
                at = end
    except struct.error as error:
        raise UnreadableError("bad_arrow", f"cannot be read as Arrow: {error}", "Write the file again.") from error
    finally:
        stream.seek(0)
    return budget


def _blocks(stream: BinaryIO, size: int) -> Iterator[int]:
    """Yield the offsets of the dictionaries and batches of a file; a batch may be listed more than once."""
    tail = 4 + len(FILE_MAGIC)
    stream.seek(max(0, size - tail))
    (length,) = struct.unpack_from("<i", stream.read(tail))
    if not 0 < length <= min(size - tail, _MOST_METADATA_BYTES):
        raise struct.error("its footer has no size")
    stream.seek(size - tail - length)
    footer = _Table.root(stream.read(length))
    for slot in (2, 3):
        for at, *_ in footer.structs(slot, _BLOCK):
            yield at


def _count(stream: BinaryIO, at: int, size: int, budget: Budget) -> int:
    """Count the message at this offset; return the offset of the next one, 0 at the end of a stream."""
    if not 0 <= at < size:
        raise struct.error("a message begins after the end")
    stream.seek(at)
    (length,) = struct.unpack("<i", stream.read(4))
    if length == _CONTINUED:
        (length,) = struct.unpack("<i", stream.read(4))
    if length == 0:
        return 0
    if not 0 < length <= min(size, _MOST_METADATA_BYTES):
        raise struct.error("a message has no size")
    message = _Table.root(stream.read(length))
    body = stream.tell()
    end = body + message.number(3, "q")
    if not body <= end <= size:
        raise struct.error("a message continues after the end of the file")
    kind, header = message.number(1, "B"), message.table(2)
    if header is None:
        raise struct.error("a message has no header")
    batch = header.table(1) if kind == _DICTIONARY else header if kind == _RECORDS else None
    if batch is not None:
        if kind == _RECORDS:
            budget.take_rows(batch.number(0, "q"))
        _count_batch(stream, batch, (body, end), budget)
    return end


def _count_batch(stream: BinaryIO, batch: _Table, body: tuple[int, int], budget: Budget) -> None:
    budget.take_values(batch.number(0, "q"))
    for length, _ in batch.structs(1, _NODE):
        budget.take_values(length)
    compressed = batch.table(3) is not None
    start, end = body
    for offset, length in batch.structs(2, _BUFFER):
        if offset < 0 or length < 0 or start + offset + length > end:
            raise struct.error("a buffer lies outside of its message")
        stored = length
        if compressed and length:
            stream.seek(start + offset)
            (stored,) = _COMPRESSED.unpack(stream.read(_COMPRESSED.size))
        budget.take_stored(length if stored == -1 else stored)
