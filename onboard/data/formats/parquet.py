"""Parquet, with the class names that the `datasets` library stores in its schema."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from onboard.data.formats.source import open_bytes, too_large
from onboard.data.formats.table import Reader, Row, UnreadableError, refuse_doubled
from onboard.data.limits import MAX_FILE_BYTES, MAX_ROWS

_BATCH_ROWS: Final = 512
_COPY_BYTES: Final = 1 << 20


class ParquetReader(Reader):
    """Reads the wanted columns of a Parquet file, a few hundred rows at a time."""

    def columns(self) -> tuple[str, ...]:
        """The top-level columns."""
        with self._opened() as file:
            return tuple(file.schema_arrow.names)

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Names of every ClassLabel column."""
        with self._opened() as file:
            return _class_names((file.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows with these columns only."""
        with self._opened() as file:
            refuse_doubled(file.schema_arrow.names, columns, "Name the columns once each.")
            _require_size(file, columns)
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(dict.fromkeys(columns))):
                values = [_plain(column) for column in batch.columns]
                for row in zip(*values, strict=True):
                    number += 1
                    yield Row(number, None, dict(zip(batch.schema.names, row, strict=True)))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with _seekable(self._path) as stream, parquet.ParquetFile(stream) as file:
                yield file
        except (pa.ArrowException, UnicodeDecodeError) as error:  # the latter of a column's name
            first_line = str(error).partition("\n")[0].rstrip(".")
            message = f"cannot be read as Parquet: {first_line}"
            raise UnreadableError("bad_parquet", message, "Write the file again.") from error


@contextmanager
def _seekable(path: Path) -> Iterator[BinaryIO]:
    """The file itself, or its decompressed bytes in a temporary file."""
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
            yield copy


def _require_size(file: Any, columns: Sequence[str]) -> None:
    if file.metadata.num_rows > MAX_ROWS:
        message = f"has {file.metadata.num_rows:,} rows; the limit is {MAX_ROWS:,}"
        raise UnreadableError("too_many_rows", message, "Pass fewer rows; a few thousand are plenty.")
    size = 0
    for group in range(file.metadata.num_row_groups):
        for index in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(index)
            if chunk.path_in_schema.partition(".")[0] in columns:
                size += chunk.total_uncompressed_size
    if size > MAX_FILE_BYTES:
        raise too_large(row=None)


def _plain(column: Any) -> list[object]:
    """Python values: texts as bytes (bad UTF-8 is told by row later), short floats by their shortest decimal."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        column = column.cast(pa.large_binary())
    elif pa.types.is_float16(kind) or pa.types.is_float32(kind):
        column = column.cast(pa.float32()).cast(pa.string()).cast(pa.float64())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    return list(column.to_pylist())


def _class_names(metadata: bytes) -> dict[str, tuple[str, ...]]:
    try:
        features = json.loads(metadata).get("info", {}).get("features", {})
        return {
            column: tuple(str(name) for name in feature["names"])
            for column, feature in features.items()
            if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" and feature.get("names")
        }
    except (ValueError, AttributeError, TypeError):  # metadata of someone else: no names
        return {}
