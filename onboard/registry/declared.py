"""The base class of all tables, and column types."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Boolean, Double, Index, Integer, MetaData, String, text
from sqlalchemy.orm import DeclarativeBase

# SQLite only numbers rows for INTEGER PRIMARY KEY; PostgreSQL gets 64 bits.
BigNumber = BigInteger().with_variant(Integer(), "sqlite")


class Table(DeclarativeBase):
    """Base of every table. Constraints are named so that migrations can change them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy reads this plain dict from the class
        float: Double(),
        str: String(),
        bool: Boolean(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
    }


def partial_index(name: str, *columns: Any, where: str) -> Index:
    """Return a partial index, for SQLite and PostgreSQL."""
    return Index(name, *columns, postgresql_where=text(where), sqlite_where=text(where))
