"""INSERT … ON CONFLICT, which SQLite and PostgreSQL spell alike but SQLAlchemy keeps in their dialects."""

from __future__ import annotations

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from onboard.registry.tables import Table


def insert_for(session: Session, table: type[Table]) -> postgresql.Insert | sqlite.Insert:
    """An INSERT with `on_conflict_do_nothing` and `on_conflict_do_update` for the session's dialect."""
    if session.get_bind().dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)
