"""Stream multipart/form-data uploads to disk, with limits. Interrupted uploads are deleted."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from onboard.api.measuring import content_bytes, too_large
from onboard.api.upload_places import Sender, displaced
from onboard.data.limits import MAX_FILE_BYTES
from onboard.domain.limits import MAX_LABELS
from onboard.domain.submission import Submission, fields_of
from onboard.errors import InputError, StorageError, TooLargeError

MAX_UPLOAD_BYTES: Final = MAX_FILE_BYTES + (1 << 20)  # a whole request: one file of the maximum size, and its fields
MAX_AT_ONCE: Final = 8  # uploads on disk; one may have a gigabyte
FILE_FIELDS: Final = tuple(entry.name for entry in fields_of(Submission) if entry.is_file)
_MAX_FIELD_BYTES: Final = 1 << 16
_MAX_PARTS: Final = 64 + MAX_LABELS  # fields and files, and a description of each label
_MAX_HEADER_BYTES: Final = 1 << 13
_NAME_CHARACTERS: Final = 100


@dataclass
class ReceivedUpload:
    """An upload: its fields, and its files on disk by the name of their field.

    Args:
        content_bytes: decompressed size of all files; the maximum if unknown.
    """

    folder: Path
    fields: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    content_bytes: int = 0


@asynccontextmanager
async def received(request: Request, parent: Path, sender: Sender) -> AsyncIterator[ReceivedUpload]:
    """Receive the upload of a request into a temporary folder.

    Args:
        parent: parent folder; must exist.
        sender: its place; counts received bytes, and may be displaced.

    Raises:
        InputError: it is not multipart/form-data, is damaged or incomplete, or a file is a decompression bomb.
        TooLargeError: it is larger than allowed.
        StorageError: the disk is full.
        UnavailableError: it was slow, and its place was given to another client.
    """
    parser = _parser_of(request)
    folder = await run_in_threadpool(_own_folder, parent)
    try:
        upload = ReceivedUpload(folder)
        writer = _Writer(upload)
        try:
            with sender.scope:
                await _stream(request, MultipartParser(parser, writer.callbacks()), writer, sender)
            if sender.scope.cancelled_caught:
                raise displaced()
        finally:
            writer.close()
        await run_in_threadpool(_measure, upload)
        yield upload
    finally:
        await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)


def _parser_of(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not 0 < len(boundary) <= 200:
        raise InputError("not-multipart")
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > MAX_UPLOAD_BYTES:
        raise too_large()
    return boundary


async def _stream(request: Request, parser: MultipartParser, writer: _Writer, sender: Sender) -> None:
    try:
        async for piece in request.stream():
            sender.received_bytes += len(piece)
            if sender.received_bytes > MAX_UPLOAD_BYTES:
                raise too_large()
            if piece:
                await run_in_threadpool(parser.write, piece)
    except FormParserError as error:
        raise InputError("multipart-damaged") from error
    except ClientDisconnect as error:
        raise _cut_off() from error
    except OSError as error:
        raise _unstored(error) from error
    if not writer.ended:
        raise _cut_off()
    sender.has_arrived = True


class _Writer:
    """Receives parsed parts: files go to disk, fields into memory."""

    def __init__(self, upload: ReceivedUpload) -> None:
        self.ended = False
        self._upload = upload
        self._parts = 0
        self._header = b""
        self._value = b""
        self._disposition = b""
        self._name = ""
        self._text: bytearray | None = None
        self._file: BinaryIO | None = None

    def callbacks(self) -> Any:
        """Return the parser's callbacks, which it calls in the order of the bytes."""
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._header_field,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._open,
            "on_part_data": self._write,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def close(self) -> None:
        """Close the file of an unfinished part."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise TooLargeError("too-many-form-parts", limit=_MAX_PARTS)
        self._header = self._value = self._disposition = b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]
        self._require_short_header()

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._require_short_header()

    def _require_short_header(self) -> None:
        if len(self._header) + len(self._value) > _MAX_HEADER_BYTES:
            raise TooLargeError("part-header-too-long", limit=_MAX_HEADER_BYTES)

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _open(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        given = options.get(b"filename")
        if not self._name:
            raise InputError("part-without-name")
        if given is None:
            self._text = bytearray()
            return
        if self._name not in FILE_FIELDS or self._name in self._upload.files:
            raise InputError("file-not-expected", field=self._name[:100], file_fields=list(FILE_FIELDS))  # fmt: skip
        folder = self._upload.folder / self._name
        folder.mkdir()
        path = folder / safe_name(given.decode("utf-8", "replace"))
        self._upload.files[self._name] = path
        self._upload.names[self._name] = last_part(given.decode("utf-8", "replace"))
        self._file = path.open("xb")

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(memoryview(data)[start:end])
        elif self._text is not None:
            self._text += data[start:end]
            if len(self._text) > _MAX_FIELD_BYTES:
                raise TooLargeError("form-field-too-long", field=self._name[:100], limit=_MAX_FIELD_BYTES)  # fmt: skip

    def _end(self) -> None:
        self.close()
        if self._text is None:
            return
        try:
            text = self._text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError("form-field-not-utf8", field=self._name[:100]) from error
        self._upload.fields.setdefault(self._name, []).append(text)
        self._text = None

    def _finish(self) -> None:
        self.ended = True


def last_part(given: str) -> str:
    """Return a file's name without folders, whatever their separator."""
    return re.split(r"[/\\]", given)[-1]


def safe_name(given: str) -> str:
    """Return a safe file name: the last part, with plain letters and the original suffix."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "_", last_part(given))[-_NAME_CHARACTERS:].lstrip(".")
    return plain or "upload"


def _measure(upload: ReceivedUpload) -> None:
    """Add up the decompressed size. Raises InputError for a bomb, TooLargeError if it is too large."""
    upload.content_bytes = sum(content_bytes(path, name) for name, path in upload.files.items())


def _own_folder(parent: Path) -> Path:
    try:
        return Path(tempfile.mkdtemp(dir=parent))
    except OSError as error:
        raise _unstored(error) from error


def _unstored(error: OSError) -> StorageError:
    return StorageError("upload-not-stored", reason=error.strerror or error)


def _cut_off() -> InputError:
    return InputError("upload-cut-off")
