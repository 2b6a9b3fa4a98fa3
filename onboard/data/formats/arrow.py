"""Arrow files of the `datasets` library, and what they share with Parquet: class names and typed values."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final, NamedTuple

from onboard.data.formats.arrow_messages import FILE_MAGIC, require_bounded
from onboard.data.formats.budget import Budget, too_large
from onboard.data.formats.decoded import decoded_bytes, shareable
from onboard.data.formats.source import seekable
from onboard.data.formats.table import Reader, Row, distinct_names, doubled_names
from onboard.data.formats.unreadable import UnreadableError

UNLIKELY: Final = (ValueError, OverflowError, IndexError)  # invalid UTF-8 in names, invalid dates, odd offsets
_PART_ROWS: Final = 512  # number of rows that are converted to Python at once
_NO_TEXT: Final = {
    "Image": "an image", "Audio": "audio", "Video": "video", "Pdf": "a document", "Translation": "a translation",
    "TranslationVariableLanguages": "a translation", "Array2D": "an array", "Array3D": "an array",
    "Array4D": "an array", "Array5D": "an array",
}  # fmt: skip


class Described(NamedTuple):
    """The description of a schema: top-level columns, names of ClassLabels, and columns that are neither text nor
    label.

    names: the original names of the columns, which may repeat.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    class_names: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, str]

    @classmethod
    def of(cls, schema: Any) -> Described:
        """Read a pyarrow schema; raises UnicodeDecodeError if a column's name is invalid UTF-8."""
        names = tuple(schema.names)
        return cls(distinct_names(names), names, _class_names(schema), _kinds(schema))


class SchemaReader(Reader):
    """A file with a schema, which is read once."""

    def columns(self) -> tuple[str, ...]:
        """The top-level columns."""
        return self._described.columns

    def doubled(self) -> frozenset[str]:
        """Names of more than one column."""
        return doubled_names(self._described.names)

    def class_names(self) -> Mapping[str, tuple[str, ...]]:
        """Names of every ClassLabel column."""
        return self._described.class_names

    def kinds(self) -> Mapping[str, str]:
        """Columns that are neither text nor label."""
        return self._described.kinds

    @cached_property
    def _described(self) -> Described:
        return self._describe()

    @abstractmethod
    def _describe(self) -> Described:
        """Open the file and read its schema. Raises UnreadableError."""


class ArrowReader(SchemaReader):
    """Reads an Arrow file (stream or file format) in batches, and a few hundred rows at a time."""

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows with these columns only."""
        places = {name: place for place, name in enumerate(self.columns()) if name in set(columns)}
        with self._opened(list(places.values())) as (_, batches, budget):
            number = 0
            for batch in batches:
                for values in _parts(batch, budget, number + 1):
                    for row in zip(*values, strict=True):
                        number += 1
                        yield Row(number, None, dict(zip(places, row, strict=True)))

    def _describe(self) -> Described:
        with self._opened(None) as (schema, _, _):
            return Described.of(schema)

    @contextmanager
    def _opened(self, places: list[int] | None) -> Iterator[tuple[Any, Iterator[Any], Budget]]:
        """Return the schema, and the batches with the columns at these indices; None reads the schema alone."""
        import pyarrow as pa

        try:
            with seekable(self._path) as stream:
                budget = Budget(0) if places is None else require_bounded(stream)
                is_file = stream.read(len(FILE_MAGIC)) == FILE_MAGIC
                stream.seek(0)
                source = pa.PythonFile(stream, mode="r")
                options = pa.ipc.IpcReadOptions(included_fields=places)
                reader = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source, options=options)
                if is_file:
                    yield reader.schema, map(reader.get_batch, range(reader.num_record_batches)), budget
                else:
                    yield reader.schema, iter(reader), budget
        except MemoryError as error:  # pyarrow's is an ArrowException, too
            raise too_large(row=None) from error
        except (pa.ArrowException, *UNLIKELY) as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise UnreadableError("bad_arrow", f"cannot be read as Arrow: {reason}", "Write the file again.") from error


def _parts(batch: Any, budget: Budget, row: int) -> Iterator[list[list[object]]]:
    """Yield the values of a batch by column, a few hundred rows at a time. Raises UnreadableError."""
    batch.validate()  # its metadata may be wrong
    columns = [shareable(column) for column in batch.columns]
    budget.take_decoded(sum(map(decoded_bytes, columns)), row)
    batch.validate(full=True)  # it checks every character, once per row that shares the text
    for start in range(0, batch.num_rows, _PART_ROWS):
        yield [plain(column.slice(start, _PART_ROWS)) for column in columns]


def plain(column: Any) -> list[object]:
    """Convert to Python values: texts as bytes (invalid UTF-8 is reported by row later), short floats by shortest
    decimal.

    Rows that share a value of a dictionary share the object, too.
    """
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        used = column.indices.unique().drop_null()
        values = dict(zip(used.to_pylist(), plain(column.dictionary.take(used)), strict=True))
        return [None if index is None else values[index] for index in column.indices.to_pylist()]
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        column = column.cast(pa.large_binary())
    elif pa.types.is_float16(kind) or pa.types.is_float32(kind):
        column = column.cast(pa.float32()).cast(pa.string()).cast(pa.float64())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    return list(column.to_pylist())


def _class_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Return the columns of integers, or lists of them, that represent names, as the `datasets` library stores them."""
    labels = {column: _class_label(feature) for column, feature in _features(schema).items()}
    return {
        column: tuple(str(name) for name in feature["names"])
        for column, feature in labels.items()
        if isinstance(feature.get("names"), list)
    }


def _class_label(feature: dict[str, Any]) -> dict[str, Any]:
    """Return the feature, or that of its items, if it is a ClassLabel; else an empty dict."""
    parts = feature.get("feature") if feature.get("_type") in ("List", "Sequence", "LargeList") else feature
    return parts if isinstance(parts, dict) and parts.get("_type") == "ClassLabel" else {}


def _kinds(schema: Any) -> dict[str, str]:
    """Return columns that are neither text nor label, with a description: `{"photo": "an image"}`."""
    import pyarrow as pa

    nested = {column.name: _nested(column.type) for column in schema if pa.types.is_nested(column.type)}
    declared = {
        column: _NO_TEXT[str(feature.get("_type"))]
        for column, feature in _features(schema).items()
        if feature.get("_type") in _NO_TEXT
    }
    return nested | declared


def _nested(kind: Any) -> str:
    import pyarrow as pa

    return "an object" if pa.types.is_struct(kind) or pa.types.is_map(kind) else "a list"


def _features(schema: Any) -> dict[str, dict[str, Any]]:
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        return {column: feature for column, feature in features.items() if isinstance(feature, dict)}
    except (ValueError, AttributeError, TypeError):  # metadata of other software
        return {}
