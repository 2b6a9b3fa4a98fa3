"""Rows as the dataclasses of the domain: a column and the field that it fills have one name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from onboard.registry.declared import Table

R = TypeVar("R")


def record_of(record: type[R], row: Table, **converted: Any) -> R:
    """The row as a dataclass.

    Args:
        record: the dataclass; each of its fields is a column of the row, or converted.
        converted: fields that no column has as they are: tuples, enumerations, figures of the clock.
    """
    names = [declared.name for declared in fields(record)]  # type: ignore[arg-type]  # only dataclasses are records
    return record(**{name: getattr(row, name) for name in names if name not in converted}, **converted)
