"""Parquet, with the class names that the `datasets` library stores in its schema."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from onboard.data.formats.arrow import Described, SchemaReader, plain
from onboard.data.formats.source import open_bytes, too_large
from onboard.data.formats.table import Row, UnreadableError, refuse_doubled
from onboard.data.limits import MAX_FILE_BYTES, MAX_ROWS

_BATCH_ROWS: Final = 512
_COPY_BYTES: Final = 1 << 20


class ParquetReader(SchemaReader):
    """Reads the wanted columns of a Parquet file, a few hundred rows at a time."""

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows with these columns only."""
        with self._opened() as file:
            refuse_doubled(file.schema_arrow.names, columns, "Name the columns once each.")
            _require_size(file, columns)
            number = 0
            for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=list(dict.fromkeys(columns))):
                values = [plain(column) for column in batch.columns]
                for row in zip(*values, strict=True):
                    number += 1
                    yield Row(number, None, dict(zip(batch.schema.names, row, strict=True)))

    def _describe(self) -> Described:
        with self._opened() as file:
            return Described.of(file.schema_arrow)

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
