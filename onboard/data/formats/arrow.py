"""Arrow files of the `datasets` library, and what they share with Parquet: its class names, and values as they are."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final, NamedTuple

from onboard.data.formats.source import open_bytes, too_large
from onboard.data.formats.table import Reader, Row, UnreadableError, refuse_doubled
from onboard.data.limits import MAX_FILE_BYTES

_FILE_MAGIC: Final = b"ARROW1"
_NO_TEXT: Final = {
    "Image": "an image", "Audio": "audio", "Video": "video", "Pdf": "a document", "Translation": "a translation",
    "TranslationVariableLanguages": "a translation", "Array2D": "an array", "Array3D": "an array",
    "Array4D": "an array", "Array5D": "an array",
}  # fmt: skip


class Described(NamedTuple):
    """What a schema says: the top-level columns, names of the ClassLabels, and what is neither text nor label."""

    columns: tuple[str, ...]
    class_names: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, str]

    @classmethod
    def of(cls, schema: Any) -> Described:
        """Read a schema of pyarrow; it raises UnicodeDecodeError where a column's name is no UTF-8."""
        return cls(tuple(schema.names), _class_names(schema), _kinds(schema))


class SchemaReader(Reader):
    """A file whose schema says what its columns are; it is read once."""

    def columns(self) -> tuple[str, ...]:
        """The top-level columns."""
        return self._described.columns

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
    """Reads an Arrow file (a stream or the file format), a batch at a time."""

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Stream the rows with these columns only."""
        with self._opened() as (schema, batches):
            refuse_doubled(schema.names, columns, "Name the columns once each.")
            names = list(dict.fromkeys(columns))
            number = 0
            size = 0
            for batch in batches:
                size += batch.nbytes
                if size > MAX_FILE_BYTES:
                    raise too_large(row=number + 1)
                batch.validate(full=True)  # what it says of itself may be wrong
                values = [plain(batch.column(name)) for name in names]
                for row in zip(*values, strict=True):
                    number += 1
                    yield Row(number, None, dict(zip(names, row, strict=True)))

    def _describe(self) -> Described:
        with self._opened() as (schema, _):
            return Described.of(schema)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Any, Iterator[Any]]]:
        import pyarrow as pa

        try:
            with open_bytes(self._path) as stream:
                is_file = stream.read(len(_FILE_MAGIC)) == _FILE_MAGIC
                stream.seek(0)
                source = pa.PythonFile(stream, mode="r")
                if is_file:
                    file = pa.ipc.open_file(source)
                    yield file.schema, (file.get_batch(index) for index in range(file.num_record_batches))
                else:
                    reader = pa.ipc.open_stream(source)
                    yield reader.schema, iter(reader)
        except pa.ArrowException as error:
            reason = str(error).partition("\n")[0].rstrip(".")
            raise UnreadableError("bad_arrow", f"cannot be read as Arrow: {reason}", "Write the file again.") from error


def plain(column: Any) -> list[object]:
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


def _class_names(schema: Any) -> dict[str, tuple[str, ...]]:
    """Columns of integers that stand for names, as the `datasets` library stores them in a schema."""
    return {
        column: tuple(str(name) for name in feature["names"])
        for column, feature in _features(schema).items()
        if feature.get("_type") == "ClassLabel" and isinstance(feature.get("names"), list)
    }


def _kinds(schema: Any) -> dict[str, str]:
    """Columns that are neither text nor label, with what they are: `{"photo": "an image"}`."""
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
    except (ValueError, AttributeError, TypeError):  # metadata of someone else
        return {}
