"""INSERT … ON CONFLICT, which SQLite and PostgreSQL spell alike but SQLAlchemy keeps in their dialects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from onboard.registry.tables import Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def insert_for(session: Session, table: type[Table]) -> postgresql.Insert | sqlite.Insert:
    """An INSERT with `on_conflict_do_nothing` and `on_conflict_do_update` for the session's dialect."""
    if session.get_bind().dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite  # one of the two: each takes a tenth of a second to import

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def put_row(session: Session, table: type[Table], key: Mapping[str, object], values: Mapping[str, object]) -> None:
    """Insert a row; where there is one of this key, it has these values from now on."""
    statement = insert_for(session, table).values(**key, **values)
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=values))
