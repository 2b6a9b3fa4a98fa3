"""Alembic's environment: runs on the connection that it gets, or (from alembic.ini) on the database of the settings."""

from __future__ import annotations

import warnings

from alembic import context
from sqlalchemy import Connection

from onboard.registry.compatibility import record_oldest_code
from onboard.registry.database import Database
from onboard.registry.tables import OF_EXPRESSIONS, Table
from onboard.settings import Settings


def _run(connection: Connection) -> None:
    # changing a table of SQLite also reads the tables that it refers to, but does not change them
    warnings.filterwarnings("ignore", "Skipped unsupported reflection of expression-based index")
    context.configure(
        connection=connection,
        target_metadata=Table.metadata,
        compare_type=True,
        include_object=lambda _, name, *__: name not in OF_EXPRESSIONS,
        render_as_batch=connection.dialect.name == "sqlite",
        transactional_ddl=True,
        on_version_apply=record_oldest_code,
    )
    with context.begin_transaction():
        context.run_migrations()


handed: Connection | None = context.config.attributes.get("connection")
if handed is not None:
    _run(handed)
else:
    with Database(Settings().resolved_database_url).write() as session:
        _run(session.connection())
