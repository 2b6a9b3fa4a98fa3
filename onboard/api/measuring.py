"""How much content an uploaded file holds, found without parsing it: bombs are refused before anything reads them."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import BinaryIO, Final

from onboard.data.limits import MAX_FILE_BYTES
from onboard.errors import InputError, TooLargeError

MAX_RATIO: Final = 100  # of a compressed file; text compresses 3 to 20 fold
MAX_MEMBERS: Final = 20_000  # of a gzip file; bgzip makes 16,384 of as much content as a file may hold
_FREE_BYTES: Final = 16 << 20  # so much may come out of a file whatever the ratio
_READ_BYTES: Final = 1 << 16  # at each new member the rest of what was read is copied
_PIECE_BYTES: Final = 1 << 20
_GZIP: Final = 31  # zlib's word for gzip of any window
_GZIP_MAGIC: Final = b"\x1f\x8b"
_EXPANDING_MAGICS: Final = (b"PAR1", b"ARRO", b"\xff\xff\xff\xff")  # of Parquet, an Arrow file, an Arrow stream
_MAGIC_BYTES: Final = 4


def content_bytes(path: Path, name: str) -> int:
    """Bytes of a file after decompression; the most there may be where only its reader finds out.

    That is so of Parquet, Arrow and odd gzip.

    Args:
        name: of the form's field, for messages.

    Raises:
        InputError: much more comes out of it than was sent, or it is gzip of very many members.
        TooLargeError: it holds more than a file may.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(_MAGIC_BYTES)
        if not head.startswith(_GZIP_MAGIC):
            return MAX_FILE_BYTES if head in _EXPANDING_MAGICS else size
        file.seek(0)
        return _Gzip(file, max(size * MAX_RATIO, _FREE_BYTES), name).measured()


def too_large(name: str = "dataset") -> TooLargeError:
    """The error for a file of more bytes than one may have."""
    return TooLargeError("file-too-large", field=name, limit=MAX_FILE_BYTES, mebibytes=MAX_FILE_BYTES >> 20)


class _Gzip:
    """Decompresses as Python's gzip does, which reads it later: member after member, over zeros between them."""

    def __init__(self, file: BinaryIO, most: int, name: str) -> None:
        self._file = file
        self._most = most
        self._name = name
        self._size = 0
        self._head = b""

    def measured(self) -> int:
        """The bytes of all members."""
        waiting = self._file.read(_READ_BYTES)
        try:
            for _ in range(MAX_MEMBERS):
                waiting = self._after_zeros(self._after_member(waiting))
                if not waiting:
                    return MAX_FILE_BYTES if self._head in _EXPANDING_MAGICS else self._size
        except zlib.error:  # its reader tells what is wrong, or takes more than zlib does
            return MAX_FILE_BYTES
        raise InputError("too-many-gzip-members", field=self._name, limit=MAX_MEMBERS)  # fmt: skip

    def _after_member(self, waiting: bytes) -> bytes:
        """Decompress one member; returns what was read behind it."""
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
