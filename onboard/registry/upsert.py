"""INSERT … ON CONFLICT, which SQLite and PostgreSQL spell alike but SQLAlchemy keeps in their dialects."""

from __future__ import annotations

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
