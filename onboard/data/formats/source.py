"""Open a file: check existence, format and compression; read its lines in bounded memory."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, cast

from onboard.data.formats.budget import too_large
from onboard.data.formats.unreadable import UnreadableError
from onboard.data.limits import MAX_FILE_BYTES, MAX_LINE_BYTES, MAX_LINES

Format = Literal["jsonl", "csv", "tsv", "parquet", "arrow"]

_SUFFIXES: Final[dict[str, Format]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
}
_GZIP_MAGIC: Final = b"\x1f\x8b"
_PARQUET_MAGIC: Final = b"PAR1"
_ARROW_MAGICS: Final = (b"ARROW1", b"\xff\xff\xff\xff")  # of a file, of a stream
UTF8_MARK: Final = b"\xef\xbb\xbf"
_WIDE_MARKS: Final = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}  # fmt: skip - the longer ones first
_WIDE: Final = ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE")
_LFS_HEAD: Final = b"version https://git-lfs.github.com/spec/"
_HEAD_BYTES: Final = 4096
_SKIP_BYTES: Final = 1 << 16
_COPY_BYTES: Final = 1 << 20
_SUFFIX_REMEDY: Final = "Pass a file that ends in .jsonl, .csv, .tsv, .parquet or .arrow (.gz may follow)."


class Line(NamedTuple):
    """A line of a text file: its number from 1, its byte offset, and its bytes, or None if it is too long."""

    number: int
    offset: int
    data: bytes | None


def stem_of(name: str) -> str:
    """Return the file's name without folder, format and compression suffixes: `a/b.jsonl.gz` → `b`."""
    stem = Path(name).name
    for suffix in (".gz", *_SUFFIXES):
        if stem.lower().endswith(suffix):
            stem = stem[: -len(suffix)]
    return stem


def format_of(path: Path) -> Format:
    """Return the format from the file's name, checked against its first bytes.

    Raises:
        UnreadableError: the file is missing, a folder, unreadable, empty, of unknown suffix, or does not match its
            suffix.
    """
    try:
        if path.is_dir():
            raise UnreadableError(
                "not_a_file", "is a folder", "Pass one file; pass others with --validation and --test."
            )
        if not path.exists():
            raise UnreadableError("missing_file", "does not exist", "Check the path.")
        if not path.is_file():
            raise UnreadableError("not_a_file", "is not a regular file", "Copy the data into a file first.")
        known = _SUFFIXES.get(Path(path.name.lower().removesuffix(".gz")).suffix)
        if known is None:
            raise UnreadableError("unknown_format", "has no known format", _SUFFIX_REMEDY)
        with open_bytes(path) as stream:
            _require_agreement(known, stream.read(_HEAD_BYTES), path)
    except ValueError as error:  # a NUL character in the path
        raise UnreadableError("missing_file", f"is not a path: {error}") from error
    return known


def open_bytes(path: Path) -> BinaryIO:
    """Open the file and decompress gzip (whatever its name)."""
    with path.open("rb") as stream:
        compressed = stream.read(2) == _GZIP_MAGIC
    return cast("BinaryIO", gzip.open(path)) if compressed else path.open("rb")


def lines_of(path: Path) -> Iterator[Line]:
    """Yield the lines of a text file without line feeds; lines over MAX_LINE_BYTES are skipped in pieces.

    Raises:
        UnreadableError: the file is larger than MAX_FILE_BYTES, or has more than MAX_LINES.
    """
    with open_bytes(path) as stream:
        offset = len(UTF8_MARK) if stream.read(len(UTF8_MARK)) == UTF8_MARK else 0
        stream.seek(offset)
        number = 0
        while data := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if number > MAX_LINES:
                message = f"has more than {MAX_LINES:,} lines"
                raise UnreadableError("too_many_rows", message, "Pass fewer rows; a few thousand are enough.")
            start = offset
            offset += len(data)
            too_long = len(data) > MAX_LINE_BYTES and not data.endswith(b"\n")
            while too_long and (piece := stream.readline(_SKIP_BYTES)):
                offset += len(piece)
                if piece.endswith(b"\n") or offset > MAX_FILE_BYTES:
                    break
            if offset > MAX_FILE_BYTES:
                raise too_large(row=None)
            yield Line(number, start, None if too_long else data.removesuffix(b"\n"))


@contextmanager
def seekable(path: Path) -> Iterator[BinaryIO]:
    """Open the file itself, or its decompressed bytes in a temporary file. Raises UnreadableError."""
    with open_bytes(path) as stream:
        if not isinstance(stream, gzip.GzipFile):
            yield stream
            return
        with tempfile.TemporaryFile() as copy:
            while piece := stream.read(_COPY_BYTES):
                copy.write(piece)
                if copy.tell() > MAX_FILE_BYTES:
                    raise too_large(row=None)
            copy.seek(0)
            yield cast("BinaryIO", copy)


def _require_agreement(known: Format, head: bytes, path: Path) -> None:
    if not head.strip():
        raise UnreadableError("empty_file", "is empty", "Pass a file with rows in it.")
    if head.startswith(_LFS_HEAD):
        remedy = f"Fetch the file itself: git lfs pull --include {path.name}"
        raise UnreadableError("git_lfs_pointer", "is a Git LFS pointer, not the file itself", remedy)
    is_parquet = head.startswith(_PARQUET_MAGIC)
    if known == "parquet":
        if not is_parquet:
            raise UnreadableError("not_parquet", "is not a Parquet file, despite its name", _SUFFIX_REMEDY)
    elif known == "arrow":
        if not head.startswith(_ARROW_MAGICS):
            raise UnreadableError("not_arrow", "is not an Arrow file, despite its name", _SUFFIX_REMEDY)
    elif is_parquet:
        raise UnreadableError("binary", "is a Parquet file", f"Rename it to {stem_of(path.name)}.parquet.")
    elif encoding := _wide_encoding(head):
        remedy = f"Convert it: iconv -f {encoding} -t UTF-8 {path.name} > utf8-{path.name}"
        raise UnreadableError("not_utf8", f"is {encoding}, not UTF-8", remedy, row=1)
    elif b"\r" in head.rstrip() and b"\n" not in head:
        remedy = f"Convert it: tr '\\r' '\\n' < {path.name} > lines-{path.name}"
        raise UnreadableError("line_ends", "ends its lines with carriage returns instead of line feeds", remedy)
    elif b"\x00" in head:
        raise UnreadableError("binary", "is binary, not text", _SUFFIX_REMEDY)


def _wide_encoding(head: bytes) -> str | None:
    """Detect UTF-16 or UTF-32, by byte order mark or zero bytes; None for anything else."""
    for mark, encoding in _WIDE_MARKS.items():
        if head.startswith(mark):
            return encoding
    if b"\x00" not in head:
        return None
    whole = head[: len(head) // 4 * 4]
    for encoding in _WIDE:
        with suppress(UnicodeDecodeError):
            text = whole.decode(encoding)
            if "\x00" not in text and sum(map(str.isascii, text)) > len(text) / 2:
                return encoding
    return None
