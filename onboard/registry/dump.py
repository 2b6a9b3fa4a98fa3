"""Every table as plain rows, independent of the database, for backups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Column, Integer, Table, func, select, text
from sqlalchemy.orm import Session

from onboard.registry.artifacts import is_referenced
from onboard.registry.quota_tables import OwnedArtifactRow
from onboard.registry.tables import ArtifactRow, BaseRow, EmbeddingVersionRow
from onboard.registry.tables import Table as Declared

# Data about processes, open browsers and the schema itself, which a copy cannot restore.
TRANSIENT: Final = frozenset({"workers", "leases", "sessions", "sign_in_codes", "schema_compatibility"})
_FETCHED: Final = 500  # rows per database fetch


def tables() -> list[Table]:
    """Return every table of a backup, in an order in which rows can be inserted."""
    return [table for table in Declared.metadata.sorted_tables if table.name not in TRANSIENT]


def rows(session: Session, table: Table) -> Iterator[dict[str, Any]]:
    """Return the rows of a table by key; for artifacts, only referenced ones, because others may be deleted."""
    statement = select(table).order_by(*table.primary_key.columns)
    if table is ArtifactRow.__table__:
        statement = statement.where(is_referenced())
    if table is OwnedArtifactRow.__table__:
        statement = statement.where(OwnedArtifactRow.artifact.in_(select(ArtifactRow.digest).where(is_referenced())))
    result = session.execute(statement.execution_options(yield_per=_FETCHED))
    return (dict(row) for row in result.mappings())


def number_column(table: Table) -> Column[int] | None:
    """Return the column that the database numbers, or None."""
    columns = list(table.primary_key.columns)
    return columns[0] if len(columns) == 1 and isinstance(columns[0].type, Integer) else None


def last_number(session: Session, table: Table) -> int:
    """Return the last number that the database assigned in a table; 0 without numbering or rows."""
    column = number_column(table)
    if column is None:
        return 0
    highest: int = session.execute(select(func.coalesce(func.max(column), 0))).scalar_one()
    if session.get_bind().dialect.name != "sqlite":
        used = f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {_sequence(session, column)}"
        return max(highest, int(session.execute(text(used)).scalar_one()))
    if not _remembers_numbers(table):
        return highest
    used = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = :table"
    return max(highest, int(session.execute(text(used), {"table": table.name}).scalar_one()))


def continue_after(session: Session, table: Table, last: int) -> None:
    """Make the database number further rows of a table from `last` + 1."""
    column = number_column(table)
    if column is None or last < 1:
        return
    if session.get_bind().dialect.name != "sqlite":
        session.execute(text("SELECT setval(:sequence, :last)"), {"sequence": _sequence(session, column), "last": last})
    elif _remembers_numbers(table):
        facts = {"table": table.name, "last": last}
        session.execute(text("DELETE FROM sqlite_sequence WHERE name = :table"), facts)
        session.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)"), facts)


def _sequence(session: Session, column: Column[int]) -> str:
    facts = {"table": column.table.name, "column": column.name}
    sequence: str = session.execute(text("SELECT pg_get_serial_sequence(:table, :column)"), facts).scalar_one()
    return sequence


def _remembers_numbers(table: Table) -> bool:
    """Return whether SQLite stores the table's last number. Otherwise it continues after the highest existing one."""
    return bool(table.dialect_options["sqlite"]["autoincrement"])


@dataclass(frozen=True, slots=True)
class BaseInUse:
    """A registered base.

    Args:
        versions: how many versions were learned on it. Without the base's folder they cannot predict.
    """

    name: str
    digest: str
    versions: int


def bases_in_use(session: Session) -> list[BaseInUse]:
    """Return every registered base by name, and how many learned versions need it."""
    learned = (
        select(func.count())
        .where(EmbeddingVersionRow.base_digest == BaseRow.digest, EmbeddingVersionRow.kind != "source")
        .scalar_subquery()
    )
    counts = session.execute(select(BaseRow.name, BaseRow.digest, learned).order_by(BaseRow.name, BaseRow.digest))
    return [BaseInUse(*row) for row in counts]
