"""The base class of repositories, and conversion of rows to dataclasses of the domain."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from onboard.registry.declared import Table

R = TypeVar("R")


class Repository:
    """Reads and writes rows in the session of the caller and never commits."""

    def __init__(self, session: Session) -> None:
        self._session = session


def record_of(record: type[R], row: Table, **converted: Any) -> R:
    """Convert a row to a dataclass with the same field names.

    Args:
        record: the dataclass; each of its fields is a column of the row, or in `converted`. Lists become tuples.
        converted: fields that differ from their column, such as enumerations, sets and values from the clock.
    """
    names = [declared.name for declared in fields(record)]  # type: ignore[arg-type]  # only dataclasses are records
    columns = {name: getattr(row, name) for name in names if name not in converted}
    lists = {name: tuple(value) for name, value in columns.items() if isinstance(value, list)}
    return record(**{**columns, **lists}, **converted)
