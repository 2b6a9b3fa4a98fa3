"""Which code may work on which schema: an upgrade with running processes has two releases on one database.

A migration of the kind "expand" only adds what earlier code ignores. One of the kind "contract" takes something away,
so it records the oldest revision whose code still works. Code knows the revisions up to its own. Therefore it works on
a newer schema exactly if it knows the recorded revision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, delete, insert, inspect, select, text
from sqlalchemy.orm import Session

import migrations
from onboard.errors import ConflictError
from onboard.registry.schema_tables import CompatibilityRow

if TYPE_CHECKING:
    from alembic.runtime.migration import MigrationContext, MigrationInfo
    from alembic.script import Script, ScriptDirectory

_RECORD = CompatibilityRow.__tablename__


def require_fitting(session: Session) -> None:
    """Raise ConflictError unless this code works on the schema, which a later release may have changed meanwhile."""
    revision = revision_in(session)
    if revision != migrations.HEAD:
        require_fit(session, revision)


def require_current(session: Session) -> None:
    """Raise ConflictError if the schema is newer: backups and deletions have to know every table and column."""
    revision = revision_in(session)
    if revision != migrations.HEAD:
        require_fit(session, revision)
        raise ConflictError("schema-ahead", found=revision, wanted=migrations.HEAD)


def require_fit(session: Session, revision: str | None) -> None:
    """Raise ConflictError unless this code works on the schema of this revision, which the session's database has."""
    if revision is None:
        raise ConflictError("schema-missing", found=None, wanted=migrations.HEAD)
    if revision in migrations.REVISIONS:
        raise ConflictError("schema-outdated", found=revision, wanted=migrations.HEAD)
    if not is_compatible(session):
        raise too_new(revision, "The database's schema")


def is_compatible(session: Session) -> bool:
    """Return whether code of this release works on the schema, which is of a revision that it does not know."""
    if not inspect(session.connection()).has_table(_RECORD):
        return False
    return session.scalar(select(CompatibilityRow.oldest_code)) in migrations.REVISIONS


def too_new(revision: str, whose: str) -> ConflictError:
    """Return the error for a schema that this code does not work on."""
    return ConflictError("schema-too-new", found=revision, wanted=migrations.HEAD, whose=whose)


def revision_in(session: Session) -> str | None:
    """Return the revision that the database records. Raises a database error if there are no tables."""
    revision: str | None = session.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return revision


def record_oldest_code(
    ctx: MigrationContext,
    step: MigrationInfo,  # noqa: ARG001 - the callback's signature
    heads: Collection[Any],
    run_args: Mapping[str, Any],  # noqa: ARG001 - the callback's signature
) -> None:
    """Record the oldest code that works on the schema, after each step of an upgrade or downgrade."""
    connection, scripts = ctx.connection, ctx.script
    assert isinstance(connection, Connection)
    assert scripts is not None
    if inspect(connection).has_table(_RECORD):
        (revision,) = heads
        connection.execute(delete(CompatibilityRow))
        connection.execute(insert(CompatibilityRow).values(oldest_code=oldest_code(scripts, revision)))


def oldest_code(scripts: ScriptDirectory, revision: str) -> str:
    """Return the oldest revision whose code works on the schema of `revision`."""
    chain = list(scripts.iterate_revisions(revision, "base"))[::-1]
    place = {script.revision: number for number, script in enumerate(chain)}
    needed = [place[migrations.FIRST_RECORDED]]
    needed += [place[_needed_by(script)] for script in chain[needed[0] + 1 :] if not is_expanding(script)]
    return chain[max(needed)].revision


def is_expanding(script: Script) -> bool:
    """Return whether a migration declares that the code before it goes on working."""
    return getattr(script.module, "kind", "contract") == "expand"


def _needed_by(script: Script) -> str:
    return str(getattr(script.module, "oldest_code", script.revision))
