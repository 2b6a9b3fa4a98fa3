"""Measure the decompressed size of an upload without parsing it, to refuse decompression bombs early."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO, Final

from onboard.data.limits import MAX_FILE_BYTES
from onboard.errors import InputError, TooLargeError

MAX_RATIO: Final = 100  # of a compressed file; text compresses 3 to 20 fold
MAX_MEMBERS: Final = 20_000  # of a gzip file; bgzip creates 16,384 for the largest allowed content
_FREE_BYTES: Final = 16 << 20  # decompressed size that is always allowed
_READ_BYTES: Final = 1 << 16  # at each new member, the rest of the block is copied
_PIECE_BYTES: Final = 1 << 20
_GZIP: Final = 31  # zlib's code for gzip with any window
_GZIP_MAGIC: Final = b"\x1f\x8b"
_EXPANDING_MAGICS: Final = (b"PAR1", b"ARRO", b"\xff\xff\xff\xff")  # of Parquet, an Arrow file, an Arrow stream
_MAGIC_BYTES: Final = 4


def content_bytes(path: Path, name: str) -> int:
    """Return the decompressed size of a file in bytes; the maximum if only its reader can tell.

    That is the case for Parquet, Arrow and unusual gzip files.

    Args:
        name: name of the form's field, for messages.

    Raises:
        InputError: it expands too much, or is a gzip file of too many members.
        TooLargeError: it contains more than allowed.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_MAGIC_BYTES)
        if not head.startswith(_GZIP_MAGIC):
            return MAX_FILE_BYTES if head in _EXPANDING_MAGICS else size
        file.seek(0)
        return _Gzip(file, max(size * MAX_RATIO, _FREE_BYTES), name).measured()


def too_large(name: str = "dataset") -> TooLargeError:
    """Return the error for a file that is too large."""
    return TooLargeError("file-too-large", field=name, limit=MAX_FILE_BYTES, mebibytes=MAX_FILE_BYTES >> 20)


class _Gzip:
    """Decompresses like Python's gzip, which reads it later: member after member, skipping zeros between them."""

    def __init__(self, file: BinaryIO, most: int, name: str) -> None:
        self._file = file
        self._most = most
        self._name = name
        self._size = 0
        self._head = b""

    def measured(self) -> int:
        """Return the total size of all members."""
        waiting = self._file.read(_READ_BYTES)
        try:
            for _ in range(MAX_MEMBERS):
                waiting = self._after_zeros(self._after_member(waiting))
                if not waiting:
                    return MAX_FILE_BYTES if self._head in _EXPANDING_MAGICS else self._size
        except zlib.error:  # its reader reports the error, or accepts more than zlib
            return MAX_FILE_BYTES
        raise InputError("too-many-gzip-members", field=self._name, limit=MAX_MEMBERS)  # fmt: skip

    def _after_member(self, waiting: bytes) -> bytes:
        """Decompress one member; return the data after it."""
        inflater = zlib.decompressobj(_GZIP)
        while not inflater.eof and (waiting or (waiting := self._file.read(_READ_BYTES))):
            self._count(inflater.decompress(waiting, _PIECE_BYTES))
            waiting = inflater.unconsumed_tail
        return inflater.unused_data

    def _after_zeros(self, waiting: bytes) -> bytes:
        while not (rest := waiting.lstrip(b"\0")):
            if not (waiting := self._file.read(_READ_BYTES)):
                break
        return rest

    def _count(self, piece: bytes) -> None:
        self._head = (self._head + piece[:_MAGIC_BYTES])[:_MAGIC_BYTES]
        self._size += len(piece)
        if self._size > self._most:
            raise InputError("gzip-ratio-too-large", field=self._name, limit=MAX_RATIO)  # fmt: skip
        if self._size > MAX_FILE_BYTES:
            raise too_large(self._name)
