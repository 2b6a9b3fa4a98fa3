"""The database's clock, the only clock for leases and heartbeats of all machines."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Double, or_, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.sql.expression import FunctionElement

IMPLAUSIBLE_SECONDS: Final = 3600.0  # ahead of now


class database_now(FunctionElement[float]):  # noqa: N801 - it reads as an SQL function: database_now() + 60
    """Epoch seconds (double) by the database's clock when the statement runs."""

    type = Double()
    inherit_cache = True
    name = "database_now"


@compiles(database_now, "sqlite")
def _sqlite(*_compiler: Any, **_keywords: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(database_now, "postgresql")
def _postgresql(*_compiler: Any, **_keywords: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) AS double precision)"


def has_come(moment: ColumnElement[Any] | InstrumentedAttribute[Any]) -> ColumnElement[bool]:
    """Condition: the moment has passed, or is so far ahead that the clock must have been set back since.

    No lease or delay lasts an hour. Without this rule, a clock that was two hours fast would block a lost or newly
    submitted job for two hours.
    """
    return or_(moment <= database_now(), moment > database_now() + IMPLAUSIBLE_SECONDS)


def read_clock(session: Session) -> float:
    """Return the database's time in epoch seconds."""
    return session.scalars(select(database_now())).one()
