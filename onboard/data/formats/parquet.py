"""Parquet, with the class names that the `datasets` library stores in its schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from typing import Any, BinaryIO

from onboard.data.formats.arrow import UNLIKELY, Described, SchemaReader, plain
from onboard.data.formats.budget import too_large
from onboard.data.formats.decoded import decoded_bytes, shareable
from onboard.data.formats.parquet_pages import Leaf, require_bounded
from onboard.data.formats.source import seekable
from onboard.data.formats.table import Row
from onboard.data.formats.unreadable import UnreadableError


class ParquetReader(SchemaReader):
    """Reads the requested columns of a Parquet file, a few thousand rows at a time."""

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows with these columns only."""
        from pyarrow import parquet

        by_name = self._by_name(columns)
        read = [distinct for group in by_name.values() for distinct in group]
        with self._opened() as (file, stream):
            leaves = _leaves(file.schema, by_name.keys())
            bounded = require_bounded(stream, file.metadata, leaves)
            budget, number = bounded.budget, 0
            stream.seek(0)
            with parquet.ParquetFile(stream, metadata=file.metadata, read_dictionary=bounded.dictionaries) as reader:
                for batch in reader.iter_batches(batch_size=bounded.batch_rows, columns=list(by_name)):
                    if batch.num_columns != len(read):
                        raise UnreadableError(
                            "doubled_column", "has two columns with the same name", "Rename one of them."
                        )
                    shared = [shareable(column) for column in batch.columns]
                    budget.take_decoded(sum(map(decoded_bytes, shared)), number + 1)
                    for row in zip(*map(plain, shared), strict=True):
                        number += 1
                        yield Row(number, None, dict(zip(read, row, strict=True)))

    def _by_name(self, columns: Sequence[str]) -> dict[str, list[str]]:
        """Return names in the file with the names of their columns, as pyarrow reads columns by name."""
        asked = set(columns)
        pairs = list(zip(self._described.names, self.columns(), strict=True))
        names = {name for name, distinct in pairs if distinct in asked}
        by_name: dict[str, list[str]] = {}
        for name, distinct in pairs:
            if name in names:
                by_name.setdefault(name, []).append(distinct)
        return by_name

    def _describe(self) -> Described:
        with self._opened() as (file, _):
            return Described.of(file.schema_arrow)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, BinaryIO]]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with seekable(self._path) as stream, parquet.ParquetFile(stream) as file:
                yield file, stream
        except MemoryError as error:  # pyarrow's is an ArrowException, too
            raise too_large(row=None) from error
        except (pa.ArrowException, *UNLIKELY) as error:
            first_line = str(error).partition("\n")[0].rstrip(".")
            message = f"cannot be read as Parquet: {first_line}"
            raise UnreadableError("bad_parquet", message, "Write the file again.") from error


def _leaves(schema: Any, columns: Set[str]) -> list[Leaf]:
    """Return the stored columns that these columns consist of."""
    leaves: list[Leaf] = []
    for place in range(len(schema)):
        column = schema.column(place)
        parts = column.path.split(".")
        if any(".".join(parts[:end]) in columns for end in range(1, len(parts) + 1)):
            leaves.append(Leaf(place, column.path, column.physical_type == "BYTE_ARRAY"))
    return leaves
