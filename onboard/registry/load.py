"""Fill an empty registry with the rows of a backup: all of them in one transaction, or none."""

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

# What a service has of itself, as soon as any command has registered the base: nothing of this is anybody's work.
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
        last: the highest number that was given out for its rows.
        batches: reads its rows.
    """

    table: str
    last: int
    batches: Callable[[], Iterator[Rows]]


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Jobs that were running when the backup was made.

    Args:
        requeued: wait again, and go on after their last finished stage.
        cancelled: someone had asked to cancel them.
    """

    requeued: tuple[str, ...]
    cancelled: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoingOn:
    """What of a backup shall go on working, though nobody knows what has become of it since.

    Args:
        tokens: tokens that worked when it was made. One that was revoked later would work again.
        webhooks: messages that had not arrived. The service that was backed up may have sent them later.
    """

    tokens: bool = False
    webhooks: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of rows that do not simply stay as they were.

    Args:
        revoked_tokens: that worked when the backup was made, and do no more.
        kept_tokens: that work as they did then.
        dropped_webhooks: messages that will not be sent.
    """

    unfinished: Unfinished
    revoked_tokens: int
    kept_tokens: int
    dropped_webhooks: int


def require_empty(url: str) -> None:
    """Raise ConflictError, naming what is there, unless the service has nothing but what it ships with."""
    if revision_of(url) is None:
        return  # SQLite would make the file
    with migrating(url) as migration:
        migration.upgrade()
        _require_empty(migration.session)
        migration.session.rollback()  # only looked at: the schema stays as it was


def load(url: str, revision: str, contents: Sequence[Contents], going_on: GoingOn, created_at: str) -> Loaded:
    """Insert the rows of a backup and bring the schema to this code's.

    Args:
        revision: the schema's, that the rows were read from.
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
    """Whoever else would write waits; SQLite has one writer at a time anyway."""
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
    """By the tables as they are at the backup's revision, which this code's classes may not describe."""
    known = MetaData()
    known.reflect(session.connection())
    ours = known.tables.keys() - TRANSIENT - {"alembic_version"}
    for part in contents:
        if part.table not in ours:
            raise DamagedError("backup-table-unknown", table=part.table)
        table = known.tables[part.table]
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
        raise  # the database's trouble, not the backup's
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
    """Jobs that were running have no worker here: they are queued again, and that attempt does not count."""
    facts = {"reason": "restored from a backup that was made while it ran"}
    error = CancelledError("job-cancelled-before-restore").to_json()
    asked, with_error = JobRow.cancel_requested.is_(True), {**facts, "error": error}
    cancelled = take_away(session, asked, JobState.CANCELLED, with_error, error=error, finished_at=database_now())
    requeued = queue_again(session, true(), facts)
    return Unfinished(tuple(job for job, *_ in requeued), tuple(job for job, *_ in cancelled))
