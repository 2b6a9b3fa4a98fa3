"""What a migration may change so that the release before it goes on working: compares two states of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, inspect


@dataclass(frozen=True)
class TableState:
    """Args:
    columns: type, whether a value is required, and the server's default, by name.
    constraints: unique, foreign and check constraints, by everything that defines them.
    """

    columns: Mapping[str, tuple[str, bool, str | None]]
    key: tuple[str, ...]
    constraints: Mapping[str, tuple[str, ...]]


def state_of(connection: Connection) -> dict[str, TableState]:
    """Every table as the database describes it."""
    seen = inspect(connection)
    return {name: _table(seen, name) for name in seen.get_table_names() if name != "alembic_version"}


def _table(seen: Any, name: str) -> TableState:
    columns = {
        column["name"]: (str(column["type"]), not column["nullable"], column["default"])
        for column in seen.get_columns(name)
    }
    uniques = {("unique", *sorted(unique["column_names"])) for unique in seen.get_unique_constraints(name)}
    uniques |= {
        ("unique", *sorted(filter(None, index["column_names"]))) for index in seen.get_indexes(name) if index["unique"]
    }
    constraints = {str(unique): unique[1:] for unique in uniques}
    for key in seen.get_foreign_keys(name):
        terms = (key["constrained_columns"], key["referred_table"], key["referred_columns"], key["options"])
        constraints[f"foreign key {terms}"] = tuple(key["constrained_columns"])
    for check in seen.get_check_constraints(name):
        named = tuple(column for column in columns if column in check["sqltext"])
        constraints[f"check {check['sqltext']}"] = named
    return TableState(columns, tuple(seen.get_pk_constraint(name)["constrained_columns"]), constraints)


def obstacles(before: Mapping[str, TableState], after: Mapping[str, TableState]) -> list[str]:
    """What keeps code that was written for the schema `before` from working on the schema `after`."""
    found = [f"{table} is gone" for table in before.keys() - after.keys()]
    for name in before.keys() & after.keys():
        found += [f"{name}: {obstacle}" for obstacle in _of_table(before[name], after[name])]
    return sorted(found)


def _of_table(before: TableState, after: TableState) -> Iterator[str]:
    for name, column in before.columns.items():
        if name not in after.columns:
            yield f"{name} is gone"
            continue
        type_, required, default = after.columns[name]
        if type_ != column[0]:
            yield f"{name} has another type"
        if required and not column[1]:
            yield f"{name} needs a value"
        if default is None and column[2] is not None:
            yield f"{name} has no default any more"
    added = {name: after.columns[name] for name in after.columns.keys() - before.columns.keys()}
    for name, (_, required, default) in added.items():
        if required and default is None:
            yield f"{name} needs a value"
    if after.key != before.key:
        yield "it has another primary key"
    for constraint in before.constraints.keys() - after.constraints.keys():
        yield f"{constraint} is gone"
    optional = {name for name, (_, required, default) in added.items() if not required and default is None}
    for constraint in after.constraints.keys() - before.constraints.keys():
        if not optional & set(after.constraints[constraint]):
            yield f"{constraint} is new"
