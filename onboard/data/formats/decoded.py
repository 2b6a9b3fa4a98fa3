"""Compute the decoded size of a column's values without decoding them.

With a dictionary or a view, a thousand rows can share a text of a megabyte; decoded, they take a gigabyte.
"""

from __future__ import annotations

from typing import Any, Final

from onboard.data.formats.budget import too_large
from onboard.data.formats.unreadable import UnreadableError
from onboard.data.limits import MAX_FILE_BYTES

_VALUE_BYTES: Final = 16  # of a value besides its text: a number, a timestamp, a pointer
_VIEW_WORDS: Final = 4  # of four bytes each; the first is the length


def shareable(column: Any) -> Any:
    """Return a column with a dictionary that supports row lookups, which pyarrow does not offer for views."""
    import pyarrow as pa

    if not (pa.types.is_dictionary(column.type) and _is_view(column.dictionary.type)):
        return column
    if int(_lengths(column.dictionary).sum()) > MAX_FILE_BYTES:
        raise too_large(row=None)
    _require_sound(column.dictionary)  # a view may point anywhere
    return pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_binary()))


def decoded_bytes(column: Any) -> int:
    """Return the approximate size of the values, at least that of their texts.

    The buffers of the column must have the right size; their content may be invalid.

    Raises:
        UnreadableError: the type of the column cannot be counted, or its content is impossible.
    """
    import pyarrow as pa

    if isinstance(column, pa.ExtensionArray):
        return decoded_bytes(column.storage)
    kind, count = column.type, len(column)
    plain = count * _VALUE_BYTES
    if pa.types.is_dictionary(kind):
        return plain + _dictionary_bytes(column)
    if _is_text(kind):
        return plain + int(_lengths(column).sum())
    if pa.types.is_struct(kind):
        return plain + sum(map(decoded_bytes, column.flatten()))
    if pa.types.is_fixed_size_list(kind):
        return plain + decoded_bytes(column.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        start, stop = (column.offsets[0].as_py(), column.offsets[-1].as_py()) if count else (0, 0)
        parts = (column.keys, column.items) if pa.types.is_map(kind) else (column.values,)
        if not 0 <= start <= stop <= min(map(len, parts)):
            raise UnreadableError("bad_arrow", "has a list that ends before it begins", "Write the file again.")
        return plain + sum(decoded_bytes(part.slice(start, stop - start)) for part in parts)
    if pa.types.is_nested(kind):
        message = f"has a column of the unsupported type {str(kind)[:80]}"
        raise UnreadableError("column_type", message, "Remove the column, or write plain values.")
    return plain + (count * kind.byte_width if pa.types.is_fixed_size_binary(kind) else 0)


def _dictionary_bytes(column: Any) -> int:
    _require_sound(column.dictionary)  # the ends of its texts are looked up below
    counted = column.indices.value_counts()
    used, times = counted.field("values"), counted.field("counts")
    present = used.is_valid()
    values = column.dictionary.take(used.filter(present))
    if not _is_text(values.type):
        return decoded_bytes(values) * max((count.as_py() for count in times), default=0)
    return int(_lengths(values) @ times.filter(present).to_numpy(zero_copy_only=False))


def _require_sound(values: Any) -> None:
    """Raise ArrowInvalid if a text is outside its buffer. Invalid UTF-8 is reported later, by row."""
    import pyarrow as pa

    types = pa.types
    if types.is_string(values.type):
        values = values.view(pa.binary())
    elif types.is_large_string(values.type):
        values = values.view(pa.large_binary())
    elif types.is_string_view(values.type):
        values = values.view(pa.binary_view())
    values.validate(full=True)


def _lengths(column: Any) -> Any:
    """Return the length of every text in bytes, as an array of int64."""
    import numpy as np
    import pyarrow.compute as pc

    if _is_view(column.type):
        views = column.buffers()[1]
        if views is None:
            return np.zeros(0, dtype=np.int64)
        words = np.frombuffer(views, dtype="<i4")[column.offset * _VIEW_WORDS :]
        return words[: len(column) * _VIEW_WORDS : _VIEW_WORDS].astype(np.int64)
    return pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)


def _is_view(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    whole = types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    return bool(whole or _is_view(kind))
