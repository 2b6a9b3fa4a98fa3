"""What every repository works in and gives: a transaction's session, and rows as the dataclasses of the domain."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from onboard.registry.declared import Table

R = TypeVar("R")


class Repository:
    """Reads and writes rows in the transaction of whoever opened the session, and never commits."""

    def __init__(self, session: Session) -> None:
        self._session = session


def record_of(record: type[R], row: Table, **converted: Any) -> R:
    """The row as a dataclass: a column and the field that it fills have one name.

    Args:
        record: the dataclass; each of its fields is a column of the row, or converted. Lists become tuples.
        converted: fields that no column has as they are: enumerations, sets, figures of the clock.
    """
    names = [declared.name for declared in fields(record)]  # type: ignore[arg-type]  # only dataclasses are records
    columns = {name: getattr(row, name) for name in names if name not in converted}
    lists = {name: tuple(value) for name, value in columns.items() if isinstance(value, list)}
    return record(**{**columns, **lists}, **converted)
