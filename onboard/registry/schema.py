"""Open the database at a schema that this code works on. Embedded mode migrates automatically; servers never do."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import inspect, make_url, text
from sqlalchemy.orm import Session

import migrations
from onboard.errors import (
    ConflictError,
    DamagedError,
    DeadlockError,
    NotAllowedError,
    OnboardError,
    StorageError,
)
from onboard.registry.compatibility import is_compatible, require_fit, require_fitting, revision_in, too_new
from onboard.registry.database import Database
from onboard.registry.tables import Table

if TYPE_CHECKING:
    from alembic.config import Config

    from onboard.settings import Settings

_LOCK_SECONDS: Final = 5  # how long a migration waits for a table, while statements of others wait behind it
_PAUSE_SECONDS: Final = 2.0  # in which these are run, before the next attempt
_ATTEMPTS: Final = 60


def open_database(settings: Settings) -> Database:
    """Open the registry of the settings. Its schema may be of a later release if this one still works on it.

    Embedded mode creates its folder and migrates under a file lock.

    Raises:
        NotAllowedError: ONBOARD_HOME cannot be written.
        UnavailableError: PostgreSQL cannot be reached.
        ConflictError: the schema is older (run `onboard db upgrade`), or too new for this release.
    """
    if not settings.database_url:
        make_home(settings.resolved_home)
        database = Database(settings.resolved_database_url)
        database.close_to_others()
        if not _fits(database, _revision(database)):
            _migrate_under_lock(database, settings.resolved_home)
        return database
    check(settings.resolved_database_url)
    return Database(settings.resolved_database_url)


def make_home(home: Path) -> Path:
    """Create the home folder, readable by its owner only. Raises NotAllowedError or StorageError."""
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        writable = os.access(home, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
    except OSError as error:
        raise home_trouble(home, error) from error
    if not writable:
        raise _not_writable(home, "this user may not read and write there")
    return home


def home_trouble(home: Path, error: OSError, file: str | None = None) -> OnboardError:
    """Convert a failure to write in the home folder to an error.

    Args:
        file: the file or folder in it that failed.
    """
    if file and error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return NotAllowedError("home-file-not-writable", file=str(file), reason=error.strerror or error, home=home)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError("home-disk-full", home=home)
    return _not_writable(home, error.strerror or str(error))


def _not_writable(home: Path, reason: str) -> NotAllowedError:
    return NotAllowedError("home-not-writable", home=str(home), reason=reason)


def upgrade(url: str) -> str:
    """Migrate the database at `url` to this release's schema. Repeated or concurrent calls are safe.

    Processes may work on a server meanwhile. If they keep a table busy, this gives way and tries again.

    Returns:
        The revision of the schema: that of this release, or of a later one that this release works on.
    """
    if later := _later(url):
        return later
    for _ in range(_ATTEMPTS - 1):
        try:
            return _upgraded(url)
        except DeadlockError:
            time.sleep(_PAUSE_SECONDS)
    return _upgraded(url)


def _later(url: str) -> str | None:
    """Return the revision of a newer schema on which this release works; None for any other schema."""
    with Database(url) as database:
        revision = _revision(database)
        return revision if revision != migrations.HEAD and _fits(database, revision) else None


def _upgraded(url: str) -> str:
    with migrating(url) as migration:
        if migration.session.get_bind().dialect.name != "sqlite":
            migration.session.execute(text(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'"))
        migration.upgrade()
    return migrations.HEAD


class Migration:
    """A transaction that may change the schema.

    Args:
        session: session of that transaction.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def upgrade(self) -> None:
        """Migrate the schema to the revision of this release."""
        from alembic import command

        command.upgrade(_config(self.session.connection()), "head")

    def downgrade(self, revision: str) -> None:
        """Migrate the schema back to an earlier revision."""
        from alembic import command

        command.downgrade(_config(self.session.connection()), revision)


@contextmanager
def migrating(url: str) -> Iterator[Migration]:
    """Open a transaction for schema changes. On a server, concurrent ones wait.

    Raises:
        ConflictError: the schema is newer than this release, or tables with our names belong to another program.
        DamagedError: rows in SQLite refer to rows that do not exist; nothing was changed.
    """
    with Database(url, foreign_keys=False) as database:
        require_known(_revision(database), "The database's schema")
        if database.is_sqlite:
            database.close_to_others(make=True)
            database.use_log()
        with database.write() as session:
            if not database.is_sqlite:
                session.execute(text("SELECT pg_advisory_xact_lock(hashtext('onboard.migrations'))"))
            _require_no_other_tables(session)
            yield Migration(session)
            if not session.in_transaction():
                return  # it was rolled back
            if database.is_sqlite and (broken := session.execute(text("PRAGMA foreign_key_check")).all()):
                raise DamagedError("rows-dangling", rows=len(broken))


def check(url: str) -> str:
    """Return the schema revision of the database at `url`. Raises ConflictError: this release does not work on it."""
    with Database(url) as database:
        revision = _revision(database)
        if revision is None:
            raise ConflictError("schema-missing", found=None, wanted=migrations.HEAD)
        if revision != migrations.HEAD:
            with database.read() as session:
                require_fit(session, revision)
        return revision


def is_current(database: Database) -> bool:
    """Return whether the schema is that of this release. If not, a later release has migrated it."""
    return _revision(database) == migrations.HEAD


def require_still_fitting(database: Database) -> None:
    """Raise ConflictError if a later release has changed the schema so that this process has to end."""
    with database.read() as session:
        require_fitting(session)


def revision_of(url: str) -> str | None:
    """Return the schema revision of the database at `url`; None if it has no tables of Onboard, or does not exist."""
    with Database(url) as database:
        return _revision(database)


def require_known(revision: str | None, whose: str) -> None:
    """Raise ConflictError if this release does not know a schema's revision, so it is from a later one."""
    if revision is not None and revision not in migrations.REVISIONS:
        raise too_new(revision, whose)


def _migrate_under_lock(database: Database, home: Path) -> None:
    from filelock import FileLock

    try:
        lock = FileLock(home / "migrate.lock", mode=0o600).acquire()
    except OSError as error:
        raise home_trouble(home, error) from error
    with lock:
        if not _fits(database, _revision(database)):
            upgrade(database.url)


def _require_no_other_tables(session: Session) -> None:
    existing = set(inspect(session.connection()).get_table_names())
    conflicts = sorted(existing & Table.metadata.tables.keys())
    if conflicts and "alembic_version" not in existing:
        raise ConflictError("tables-of-other-program", tables=conflicts)


def _revision(database: Database) -> str | None:
    """Return the schema revision that the database records; None if there is none."""
    if database.is_sqlite and not Path(make_url(database.url).database or "").exists():
        return None
    with database.read() as session:
        return revision_in(session) if inspect(session.connection()).has_table("alembic_version") else None


def _fits(database: Database, revision: str | None) -> bool:
    """Return whether the database's schema, of this revision, is that of this release or a newer one that it works
    on.
    """
    if revision is None or revision in migrations.REVISIONS:
        return revision == migrations.HEAD
    with database.read() as session:
        return is_compatible(session)


def _config(connection: object) -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
