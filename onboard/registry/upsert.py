"""INSERT … ON CONFLICT, which SQLite and PostgreSQL share but SQLAlchemy only offers per dialect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from onboard.registry.tables import Table

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite


def insert_for(session: Session, table: type[Table]) -> postgresql.Insert | sqlite.Insert:
    """Return an INSERT with `on_conflict_do_nothing` and `on_conflict_do_update` for the session's dialect."""
    if session.get_bind().dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite  # imported only if needed, because it takes 0.1 s

        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def put_row(session: Session, table: type[Table], key: Mapping[str, object], values: Mapping[str, object]) -> None:
    """Insert a row, or update the existing row with the same key."""
    statement = insert_for(session, table).values(**key, **values)
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=values))
