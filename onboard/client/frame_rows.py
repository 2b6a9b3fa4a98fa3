"""Write rows of data frames and lists as JSON values, independent of the library.

Dates and times become ISO 8601. A 32-bit float becomes its shortest decimal. Missing values become null.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time
from decimal import Decimal
from numbers import Number
from typing import Any, Final, TextIO

import numpy as np

_MISSING: Final = ("NAType", "NaTType")  # of pandas


class UnlikeRowsError(Exception):
    """The value cannot be written as rows; the message says why."""


def write_rows(value: Any, stream: TextIO) -> None:
    """Write a frame, a list of dicts, or a dict of columns as JSON lines.

    Raises:
        UnlikeRowsError: two columns have the same name, columns have different lengths, or JSON cannot represent a
            value.
    """
    for number, row in enumerate(_rows(value), start=1):
        try:
            stream.write(json.dumps({str(name): plain(part) for name, part in row.items()}, ensure_ascii=False) + "\n")
        except (TypeError, ValueError, RecursionError) as error:
            raise UnlikeRowsError(f"row {number}: {error}") from error


def _rows(value: Any) -> Iterator[Mapping[Any, Any]]:
    if isinstance(value, list):
        yield from value
        return
    columns = dict(_columns(value))
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise UnlikeRowsError(f"its columns have {' and '.join(map(str, sorted(lengths)))} values")
    for row in zip(*columns.values(), strict=True):
        yield dict(zip(columns, row, strict=True))


def _columns(value: Any) -> Iterable[tuple[str, Sequence[Any]]]:
    """Return the columns of a dict, a structured array, or a frame, by name. Raises UnlikeRowsError."""
    if isinstance(value, Mapping):
        return [(str(name), _sequence(name, column)) for name, column in value.items()]
    if isinstance(value, np.ndarray):
        return [(name, value[name]) for name in value.dtype.names or ()]
    names = [str(name) for name in value.columns]
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise UnlikeRowsError(f"two columns are called {doubled[0]!r}")
    return [(str(name), _values(value[name])) for name in value.columns]


def _sequence(name: object, column: Any) -> Sequence[Any]:
    if isinstance(column, str | bytes) or not hasattr(column, "__len__") or not hasattr(column, "__iter__"):
        raise UnlikeRowsError(f"{str(name)!r} is a {type(column).__name__}, not a column of values")
    return _values(column) if hasattr(column, "dtype") and not isinstance(column, np.ndarray) else list(column)


def _values(series: Any) -> Sequence[Any]:
    """Return the values of a pandas or polars column without converting 32-bit floats to 64 bits."""
    kind = str(series.dtype).lower()
    if kind == "float32" and type(series).__module__.startswith("polars"):
        return [
            None if missing else number for missing, number in zip(series.is_null(), series.to_numpy(), strict=True)
        ]
    if kind in ("float32", "float16"):
        return list(series.to_numpy(dtype=kind, na_value=math.nan))
    return list(series)


def plain(value: Any) -> Any:
    """Return a value for JSON. Raises TypeError if JSON cannot represent it."""
    if type(value).__name__ in _MISSING:
        return None
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.float32 | np.float16):
        return _finite_or_none(float(str(value)))
    if isinstance(value, float):
        return _finite_or_none(float(value))
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray) or (hasattr(value, "to_list") and not isinstance(value, Number)):
        return [plain(part) for part in value]
    raise TypeError(f"a {type(value).__name__} cannot be a value of a row")


def _finite_or_none(number: float) -> float | None:
    return None if math.isnan(number) else number


def _text(value: bytes) -> object:
    """Return bytes as text if possible; otherwise as an object, which is neither text nor label."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
