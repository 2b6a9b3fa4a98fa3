"""Fill an empty registry with the rows of a backup, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import JSON, ColumnElement, MetaData, Table, delete, func, insert, select, text, true
from sqlalchemy.exc import OperationalError, StatementError
from sqlalchemy.orm import Session

import migrations
from onboard.domain.job import JobState
from onboard.errors import CancelledError, ConflictError, DamagedError
from onboard.registry.audit import record
from onboard.registry.clock import database_now
from onboard.registry.database import allow_pauses
from onboard.registry.dump import TRANSIENT, continue_after, tables
from onboard.registry.outbox import OutboxRepository
from onboard.registry.requeue import queue_again, take_away
from onboard.registry.schema import migrating, revision_of
from onboard.registry.tables import AliasMoveRow, EmbeddingVersionRow, HypernetworkRow, JobRow, TaskRow
from onboard.registry.tokens import TokenRepository

Rows = list[dict[str, Any]]

# Rows that a service has without any user's work, because any command registers the base.
_OF_ITSELF: Final[dict[str, ColumnElement[bool]]] = {
    "artifacts": true(),
    "bases": true(),
    "hypernetwork_versions": HypernetworkRow.job.is_(None),
    "tasks": TaskRow.source.is_(True),
    "embedding_versions": EmbeddingVersionRow.kind == "source",
    "aliases": true(),
    "alias_history": AliasMoveRow.reason == "published",
    "queues": true(),
}


@dataclass(frozen=True, slots=True)
class Contents:
    """One table of a backup.

    Args:
        last: the last number that was assigned to its rows.
        batches: reads its rows.
    """

    table: str
    last: int
    batches: Callable[[], Iterator[Rows]]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Jobs that were running when the backup was made.

    Args:
        requeued: queued again; they continue after their last finished stage.
        cancelled: their cancellation had been requested.
    """

    requeued: tuple[str, ...]
    cancelled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoingOn:
    """Parts of a backup that stay active, although their state may have changed since.

    Args:
        tokens: tokens that were active. A token that was revoked later is active again.
        webhooks: messages that were not delivered. The original service may have sent them later.
    """

    tokens: bool = False
    webhooks: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """Changes to restored rows.

    Args:
        revoked_tokens: number of tokens that were active and are now revoked.
        kept_tokens: number of tokens that stay active.
        dropped_webhooks: number of messages that will not be sent.
    """

    unfinished: Unfinished
    revoked_tokens: int
    kept_tokens: int
    dropped_webhooks: int


def require_empty(url: str) -> None:
    """Raise ConflictError, with the contents, unless the service only has the data that it ships with."""
    if revision_of(url) is None:
        return  # connecting to SQLite would create the file
    with migrating(url) as migration:
        migration.upgrade()
        _require_empty(migration.session)
        migration.session.rollback()  # undo the migration, which was only for reading


def load(url: str, revision: str, contents: Sequence[Contents], going_on: GoingOn, created_at: str) -> Loaded:
    """Insert the rows of a backup and migrate the schema to this release.

    Args:
        contents: the tables, in an order in which rows can be inserted.
        created_at: when the backup was made, for the audit log.

    Raises:
        ConflictError: the service is not empty.
        DamagedError: rows do not fit the schema or one another.
    """
    with migrating(url) as migration:
        session = migration.session
        allow_pauses(session)  # rows are read from the backup meanwhile
        migration.upgrade()
        _keep_others_out(session)
        _require_empty(session)
        for table in reversed(tables()):
            session.execute(delete(table))
        if revision != migrations.HEAD:
            migration.downgrade(revision)
        _insert(session, contents)
        migration.upgrade()
        last = {table.table: table.last for table in contents}
        for table in tables():
            continue_after(session, table, last.get(table.name, 0))
        unfinished = _end_leases(session)
        return _settle(session, unfinished, going_on, created_at)


def _keep_others_out(session: Session) -> None:
    """Lock all tables against other writers. SQLite has a single writer anyway."""
    if session.get_bind().dialect.name != "sqlite":
        names = ", ".join(table.name for table in tables())
        session.execute(text(f"LOCK TABLE {names} IN EXCLUSIVE MODE"))


def _require_empty(session: Session) -> None:
    rows = {}
    for table in tables():
        mine = _OF_ITSELF.get(table.name)
        statement = select(func.count()).select_from(table)
        count = session.scalar(statement if mine is None else statement.where(~mine))
        if count:
            rows[table.name] = count
    if rows:
        named = ", ".join(f"{count} {table.replace('_', ' ')}" for table, count in rows.items())
        raise ConflictError("service-not-empty", found=rows, named=named)


def _insert(session: Session, contents: Sequence[Contents]) -> None:
    """Insert rows using reflected tables, because the models of this release may not match the backup's revision."""
    schema = MetaData()
    schema.reflect(session.connection())
    ours = schema.tables.keys() - TRANSIENT - {"alembic_version"}
    for part in contents:
        if part.table not in ours:
            raise DamagedError("backup-table-unknown", table=part.table)
        table = schema.tables[part.table]
        for column in table.columns:
            if isinstance(column.type, JSON):
                column.type = JSON(none_as_null=True)
        for batch in part.batches():
            _insert_batch(session, table, batch)


def _insert_batch(session: Session, table: Table, batch: Rows) -> None:
    named = {column.name for column in table.columns}
    if any(row.keys() != named for row in batch):
        raise DamagedError("backup-columns-differ", table=table.name)
    try:
        session.execute(insert(table), batch)
    except OperationalError:
        raise  # a problem of the database, not of the backup
    except (StatementError, OverflowError) as error:
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise DamagedError("backup-rows-unfit", table=table.name, reason=reason) from error


def _settle(session: Session, unfinished: Unfinished, going_on: GoingOn, created_at: str) -> Loaded:
    tokens = TokenRepository(session)
    revoked = 0 if going_on.tokens else tokens.revoke_all()
    usable = len(tokens.list())
    dropped = 0 if going_on.webhooks else OutboxRepository(session).drop_undelivered()
    facts = {"revoked_tokens": revoked, "kept_tokens": usable, "dropped_webhooks": dropped}
    record(session, "service.restore", created_at, **facts)
    return Loaded(unfinished, **facts)


def _end_leases(session: Session) -> Unfinished:
    """Queue jobs that were running again, because their workers do not exist here. The attempt does not count."""
    facts = {"reason": "restored from a backup that was made while it ran"}
    error = CancelledError("job-cancelled-before-restore").to_json()
    cancel_requested, with_error = JobRow.cancel_requested.is_(True), {**facts, "error": error}
    cancelled = take_away(
        session, cancel_requested, JobState.CANCELLED, with_error, error=error, finished_at=database_now()
    )
    requeued = queue_again(session, true(), facts)
    return Unfinished(tuple(job for job, *_ in requeued), tuple(job for job, *_ in cancelled))
